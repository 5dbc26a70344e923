/* Which copies heal takes for good: the table of what children may say. */
#include "cluster/replicate/heal_judge.h"
#include "unit/unit.h"
#include <stdlib.h>

/* A case: whom each child blames (bit masks), who has a mark, who answers (0: all), and what differs. */
struct example {
    const char *what;
    unsigned children; /* 0: three */
    uint32_t blames[3], dirty, away;
    uint64_t size[3];
    int64_t ctime[3], mtime[3];
    uint32_t mode[3];   /* 0: 0644 */
    uint32_t xattrs[3]; /* copies with equal numbers have equal xattrs */
    enum quorum_type quorum;
    bool has_no_auto; /* quorum is what says above; else auto */
    uint32_t arbiter, policy;
    struct heal_choice choice;
    enum verdict verdict;
    uint32_t sources, sinks;
    unsigned source;
    enum heal_refusal refusal;
};

static struct heal_answers answers;

static struct heal_set set_of(const struct example *e)
{
    unsigned count = e->children ? e->children : 3;

    return (struct heal_set) {
        .child_count = count,
        .arbiter = e->arbiter,
        .quorum = { .type = e->has_no_auto ? e->quorum : QUORUM_AUTO, .child_count = count, .fixed_count = 2 },
        .policy = e->policy,
    };
}

static void fill(const struct example *e, enum change change)
{
    unsigned count = e->children ? e->children : 3;

    memset(&answers, 0, sizeof(answers));
    answers.child_count = count;
    answers.asked = mask_all(count);
    answers.ok = mask_all(count) & ~e->away;
    for_each_child(i, answers.ok)
    {
        answers.stat[i] = (struct iatt) {
            .mode = S_IFREG | (e->mode[i] ? e->mode[i] : 0644),
            .size = e->size[i],
            .ctime = e->ctime[i],
            .mtime = e->mtime[i],
        };
        answers.dirty[i].n[change] = (e->dirty & bit(i)) != 0;
        for_each_child(j, e->blames[i]) answers.pending[i][j].n[change] = 3;
    }
}

static void check(const struct example *e, const struct heal_judgement *ret)
{
    if (ret->verdict != e->verdict || ret->sources != e->sources || ret->sinks != e->sinks ||
        ret->refusal != e->refusal || (e->sources && ret->source != e->source))
        fail_msg("%s: verdict %d (not %d), sources %u (%u), sinks %u (%u), source %u (%u), refusal %d (%d)", e->what,
                 ret->verdict, e->verdict, ret->sources, e->sources, ret->sinks, e->sinks, ret->source, e->source,
                 ret->refusal, e->refusal);
}

static const struct example data_examples[] = {
    { "nothing is said", .verdict = VERDICT_CLEAN, .sources = 7 },
    { "two blame one", .blames = { 2, 0, 2 }, .verdict = VERDICT_HEAL, .sources = 5, .sinks = 2 },
    { "one blames two", .blames = { 6 }, .verdict = VERDICT_HEAL, .sources = 1, .sinks = 6 },
    { "two blame each other", .blames = { 2, 1, 0 }, .verdict = VERDICT_HEAL, .sources = 4, .sinks = 3, .source = 2 },
    { "blamed only by one that is stale itself", .blames = { 4, 0, 2 }, .verdict = VERDICT_HEAL, .sources = 1,
      .sinks = 6 },
    { "a cycle: a record that was cut off", .blames = { 2, 4, 1 }, .ctime = { 1, 3, 2 }, .verdict = VERDICT_HEAL,
      .sources = 2, .sinks = 5, .source = 1 },
    { "all blamed by a majority", .blames = { 6, 5, 3 }, .size = { 1, 1, 1 }, .verdict = VERDICT_SPLIT_BRAIN,
      .sinks = 7 },
    { "all blamed, but one did not answer", .blames = { 2, 1, 0 }, .away = 4, .size = { 1, 1 } },
    { "a pair that blames each other", .children = 2, .blames = { 2, 1 }, .size = { 1, 2 },
      .verdict = VERDICT_SPLIT_BRAIN, .sinks = 3 },
    { "all blamed and all empty", .blames = { 6, 5, 3 }, .verdict = VERDICT_HEAL, .sources = 7 },
    { "one of a pair is blamed", .children = 2, .blames = { 0, 1 }, .verdict = VERDICT_HEAL, .sources = 2, .sinks = 1,
      .source = 1 },
    { "a pair without quorum needs both", .children = 2, .blames = { 0, 1 }, .away = 1, .has_no_auto = true,
      .quorum = QUORUM_NONE },
    { "one alone decides nothing", .blames = { 2 }, .away = 6 },
    { "a majority decides", .blames = { 6 }, .away = 4, .verdict = VERDICT_HEAL, .sources = 1, .sinks = 2 },
    { "without quorum all must answer", .blames = { 6 }, .away = 4, .has_no_auto = true, .quorum = QUORUM_NONE },
    { "fixed: those two that meet every two", .blames = { 6 }, .away = 4, .has_no_auto = true, .quorum = QUORUM_FIXED,
      .verdict = VERDICT_HEAL, .sources = 1, .sinks = 2 },
    { "only marks: the longest", .dirty = 7, .size = { 1, 9, 1 }, .verdict = VERDICT_HEAL, .sources = 2, .sinks = 5,
      .source = 1 },
    { "only marks: of the longest the marked", .dirty = 2, .verdict = VERDICT_HEAL, .sources = 2, .sinks = 5,
      .source = 1 },
    { "only marks: of the marked the youngest", .dirty = 6, .ctime = { 9, 3, 4 }, .verdict = VERDICT_HEAL, .sources = 4,
      .sinks = 3, .source = 2 },
    { "shorter without a record", .size = { 5, 5, 4 }, .verdict = VERDICT_HEAL, .sources = 1, .sinks = 6 },
    { "longer but blamed", .blames = { 2 }, .size = { 5, 9, 5 }, .verdict = VERDICT_HEAL, .sources = 5, .sinks = 2 },
    { "blame and a mark on a source", .blames = { 2, 0, 2 }, .dirty = 1, .verdict = VERDICT_HEAL, .sources = 1,
      .sinks = 6 },
    { "a mark on the sink only does not matter", .blames = { 2, 0, 2 }, .dirty = 2, .verdict = VERDICT_HEAL,
      .sources = 5, .sinks = 2 },
    { "who blames itself accuses nobody", .blames = { 0, 3, 0 }, .verdict = VERDICT_HEAL, .sources = 2, .sinks = 5,
      .source = 1 },
    { "the arbiter has no data", .arbiter = 4, .blames = { 2, 0, 2 }, .size = { 3, 3, 0 }, .verdict = VERDICT_HEAL,
      .sources = 5, .sinks = 2 },
    { "the arbiter alone is good: nothing to copy from", .arbiter = 4, .blames = { 2, 1, 3 }, .size = { 3, 3, 0 },
      .verdict = VERDICT_SPLIT_BRAIN, .sinks = 7 },
    { "the arbiter alone is good, one copy is away", .arbiter = 4, .blames = { 2, 0, 2 }, .away = 1,
      .size = { 3, 3, 0 } },
    { "the arbiter is short by nature", .arbiter = 4, .size = { 3, 3, 0 }, .verdict = VERDICT_CLEAN, .sources = 7 },
    { "a blamed arbiter", .arbiter = 4, .blames = { 4, 4, 0 }, .size = { 3, 3, 0 }, .verdict = VERDICT_HEAL,
      .sources = 3, .sinks = 4 },
    { "split, and a child is chosen", .children = 2, .blames = { 2, 1 }, .size = { 1, 2 },
      .choice = { .how = HEAL_CHOOSE_CHILD, .child = 0 }, .verdict = VERDICT_HEAL, .sources = 1, .sinks = 2 },
    { "split, and the bigger is chosen", .children = 2, .blames = { 2, 1 }, .size = { 1, 2 },
      .choice = { .how = HEAL_CHOOSE_BIGGER }, .verdict = VERDICT_HEAL, .sources = 2, .sinks = 1, .source = 1 },
    { "split, and none is bigger", .children = 2, .blames = { 2, 1 }, .size = { 2, 2 },
      .choice = { .how = HEAL_CHOOSE_BIGGER }, .verdict = VERDICT_SPLIT_BRAIN, .sinks = 3,
      .refusal = HEAL_REFUSED_NO_BIGGER },
    { "split, and the latest is chosen", .children = 2, .blames = { 2, 1 }, .size = { 2, 2 }, .mtime = { 7, 6 },
      .choice = { .how = HEAL_CHOOSE_LATEST_MTIME }, .verdict = VERDICT_HEAL, .sources = 1, .sinks = 2 },
    { "split, and none is later", .children = 2, .blames = { 2, 1 }, .size = { 2, 2 },
      .choice = { .how = HEAL_CHOOSE_LATEST_MTIME }, .verdict = VERDICT_SPLIT_BRAIN, .sinks = 3,
      .refusal = HEAL_REFUSED_NO_LATER },
    { "split, policy size", .children = 2, .blames = { 2, 1 }, .size = { 3, 2 }, .policy = HEAL_POLICY_SIZE,
      .verdict = VERDICT_HEAL, .sources = 1, .sinks = 2 },
    { "split, policy size, equal", .children = 2, .blames = { 2, 1 }, .size = { 2, 2 }, .policy = HEAL_POLICY_SIZE,
      .verdict = VERDICT_SPLIT_BRAIN, .sinks = 3 },
    { "split, policy ctime", .children = 2, .blames = { 2, 1 }, .size = { 3, 2 }, .ctime = { 1, 2 },
      .policy = HEAL_POLICY_CTIME, .verdict = VERDICT_HEAL, .sources = 2, .sinks = 1, .source = 1 },
    { "split, policy majority", .blames = { 6, 5, 3 }, .size = { 3, 2, 2 }, .mtime = { 1, 2, 2 },
      .policy = HEAL_POLICY_MAJORITY, .verdict = VERDICT_HEAL, .sources = 2, .sinks = 5, .source = 1 },
    { "split, policy majority, none", .blames = { 6, 5, 3 }, .size = { 3, 2, 1 }, .policy = HEAL_POLICY_MAJORITY,
      .verdict = VERDICT_SPLIT_BRAIN, .sinks = 7 },
};

static void data_by_the_table(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(data_examples); i++) {
        const struct example *e = &data_examples[i];
        struct heal_set set = set_of(e);
        struct heal_judgement ret;

        fill(e, CHANGE_DATA);
        heal_judge_data(&set, &answers, UINT32_MAX, &e->choice, &ret);
        check(e, &ret);
    }
}

static const struct example metadata_examples[] = {
    { "nothing is said", .verdict = VERDICT_CLEAN, .sources = 7 },
    { "two blame one", .blames = { 2, 0, 2 }, .verdict = VERDICT_HEAL, .sources = 5, .sinks = 2 },
    { "the mode of one differs", .mode = { 0600 }, .verdict = VERDICT_HEAL, .sources = 6, .sinks = 1, .source = 1 },
    { "xattrs of one differ", .xattrs = { 0, 0, 1 }, .verdict = VERDICT_HEAL, .sources = 3, .sinks = 4 },
    { "all differ: the youngest of the first group", .mode = { 0600, 0640, 0644 }, .verdict = VERDICT_HEAL,
      .sources = 1, .sinks = 6 },
    { "who has no mark comes first", .dirty = 2, .children = 2, .mode = { 0600, 0640 }, .verdict = VERDICT_HEAL,
      .sources = 1, .sinks = 2 },
    { "marks on equal copies", .dirty = 5, .verdict = VERDICT_HEAL, .sources = 7, .source = 1 },
    { "a pair that blames each other", .children = 2, .blames = { 2, 1 }, .mode = { 0600 },
      .verdict = VERDICT_SPLIT_BRAIN, .sinks = 3 },
    { "a pair that blames each other and is equal", .children = 2, .blames = { 2, 1 }, .mtime = { 1, 2 },
      .verdict = VERDICT_HEAL, .sources = 3, .source = 1 },
    { "bigger says nothing about attributes", .children = 2, .blames = { 2, 1 }, .mode = { 0600 },
      .choice = { .how = HEAL_CHOOSE_BIGGER }, .verdict = VERDICT_SPLIT_BRAIN, .sinks = 3,
      .refusal = HEAL_REFUSED_METADATA },
    { "a child is chosen that is not there", .children = 2, .blames = { 2, 1 }, .mode = { 0600 },
      .choice = { .how = HEAL_CHOOSE_CHILD, .child = 2 }, .verdict = VERDICT_SPLIT_BRAIN, .sinks = 3,
      .refusal = HEAL_REFUSED_CHILD_AWAY },
    { "the arbiter is as good as others", .arbiter = 4, .blames = { 3, 3, 3 }, .mode = { 0600 },
      .verdict = VERDICT_HEAL, .sources = 4, .sinks = 3, .source = 2 },
    { "a cycle goes by the majority", .blames = { 2, 4, 1 }, .mode = { 0600, 0640, 0640 }, .verdict = VERDICT_HEAL,
      .sources = 6, .sinks = 1, .source = 1 },
};

static void metadata_by_the_table(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(metadata_examples); i++) {
        const struct example *e = &metadata_examples[i];
        struct heal_set set = set_of(e);
        uint32_t same[CHILDREN_MAX] = { 0 };
        struct heal_judgement ret;

        fill(e, CHANGE_METADATA);
        for_each_child(k, answers.ok)
        {
            for_each_child(j, answers.ok) same[k] |= e->xattrs[j] == e->xattrs[k] ? bit(j) : 0;
        }
        heal_judge_metadata(&set, &answers, UINT32_MAX, same, &e->choice, &ret);
        check(e, &ret);
    }
}

static const struct example entry_examples[] = {
    { "nothing is said", .verdict = VERDICT_CLEAN, .sources = 7 },
    { "two blame one", .blames = { 2, 0, 2 }, .verdict = VERDICT_HEAL, .sources = 5, .sinks = 2 },
    { "only marks: all vote", .dirty = 4, .verdict = VERDICT_HEAL, .sources = 7 },
    { "one that blames nobody and is not blamed", .blames = { 0, 4, 2 }, .verdict = VERDICT_HEAL, .sources = 1,
      .sinks = 6 },
    { "all are blamed: the union", .blames = { 2, 4, 1 }, .verdict = VERDICT_MERGE, .sinks = 7 },
    { "all are blamed, one is away", .blames = { 2, 1, 0 }, .away = 4 },
};

static void names_by_the_table(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(entry_examples); i++) {
        const struct example *e = &entry_examples[i];
        struct heal_set set = set_of(e);
        struct heal_judgement ret;

        fill(e, CHANGE_ENTRY);
        heal_judge_entry(&set, &answers, UINT32_MAX, &ret);
        check(e, &ret);
    }
}

static void a_data_count_of_a_directory_is_about_its_names(void **state)
{
    struct example e = { "data count", .blames = { 2 }, .verdict = VERDICT_HEAL, .sources = 5, .sinks = 2 };
    struct heal_set set = set_of(&e);
    struct heal_judgement ret;

    fill(&e, CHANGE_DATA);
    heal_judge_entry(&set, &answers, UINT32_MAX, &ret);
    check(&e, &ret);
}

static void counters_that_make_no_sense_are_marks(void **state)
{
    struct example e = { "malformed", .verdict = VERDICT_HEAL, .sources = 2, .sinks = 5, .source = 1 };
    struct heal_set set = set_of(&e);
    struct heal_judgement ret;

    fill(&e, CHANGE_DATA);
    answers.malformed = 2;
    heal_judge_data(&set, &answers, UINT32_MAX, &e.choice, &ret);
    check(&e, &ret);
}

static void a_damaged_copy_is_no_source(void **state)
{
    struct example e = { "bitrot", .verdict = VERDICT_HEAL, .sources = 6, .sinks = 1, .source = 1 };
    struct heal_set set = set_of(&e);
    struct heal_judgement ret;

    fill(&e, CHANGE_DATA);
    answers.flagged_bad = 1;
    heal_judge_data(&set, &answers, UINT32_MAX, &e.choice, &ret);
    check(&e, &ret);
}

static void a_copy_that_the_witness_blames_is_no_source(void **state)
{
    struct example e = { "witness", .children = 2, .dirty = 2, .verdict = VERDICT_HEAL, .sources = 1, .sinks = 2 };
    struct heal_set set = set_of(&e);
    struct heal_judgement ret;

    set.quorum.type = QUORUM_WITNESS;
    set.stale = 2;
    fill(&e, CHANGE_DATA);
    heal_judge_data(&set, &answers, UINT32_MAX, &e.choice, &ret);
    check(&e, &ret);
}

/* ---- one name ---- */

struct name_example {
    const char *what;
    unsigned children;    /* 0: three */
    uint32_t blamed;      /* for the directory, by child 0 (or 1) */
    bool is_merge;        /* all are blamed */
    uint32_t dirty, away; /* of the directory */
    int inode[3];         /* what the name leads to; 0: nothing; negative: a directory; 99: an entry without gfid */
    uint64_t size[3];
    uint32_t kept, elsewhere, policy;
    struct heal_choice choice;
    enum heal_name_verdict verdict;
    uint32_t right, wrong, split;
};

static const struct name_example name_examples[] = {
    { "the same", .inode = { 5, 5, 5 }, .verdict = HEAL_NAME_EQUAL, .right = 7 },
    { "nowhere", .verdict = HEAL_NAME_EQUAL },
    { "missing on one", .inode = { 5, 0, 5 }, .verdict = HEAL_NAME_EXISTS, .right = 5, .wrong = 2 },
    { "on the sink only", .blamed = 2, .inode = { 0, 5, 0 }, .verdict = HEAL_NAME_GONE, .wrong = 2 },
    { "another one on the sink", .blamed = 2, .inode = { 4, 5, 4 }, .verdict = HEAL_NAME_EXISTS, .right = 5,
      .wrong = 2 },
    { "not on the sink", .blamed = 2, .inode = { 4, 0, 4 }, .verdict = HEAL_NAME_EXISTS, .right = 5, .wrong = 2 },
    { "cut off, most have it", .dirty = 7, .inode = { 5, 0, 5 }, .verdict = HEAL_NAME_EXISTS, .right = 5, .wrong = 2 },
    { "cut off, most lack it", .dirty = 7, .inode = { 0, 0, 5 }, .verdict = HEAL_NAME_GONE, .wrong = 4 },
    { "most lack it without any record", .inode = { 0, 0, 5 }, .verdict = HEAL_NAME_EXISTS, .right = 4, .wrong = 3 },
    { "cut off in a pair", .children = 2, .dirty = 3, .inode = { 0, 5 }, .verdict = HEAL_NAME_EXISTS, .right = 2,
      .wrong = 1 },
    { "cut off in a pair, the other has another name for it", .children = 2, .dirty = 3, .inode = { 0, -5 },
      .elsewhere = 1, .verdict = HEAL_NAME_GONE, .wrong = 2 },
    { "another name, but the one without this name has no mark", .children = 2, .dirty = 2, .inode = { 0, -5 },
      .elsewhere = 1, .verdict = HEAL_NAME_EXISTS, .right = 2, .wrong = 1 },
    { "another name, but most have this one", .dirty = 7, .inode = { 0, -5, -5 }, .elsewhere = 1,
      .verdict = HEAL_NAME_EXISTS, .right = 6, .wrong = 1 },
    { "two inodes without a record, no majority", .children = 2, .inode = { 5, 6 }, .verdict = HEAL_NAME_SPLIT,
      .split = HEAL_SPLIT_GFID },
    { "a file and a directory", .children = 2, .inode = { 5, -6 }, .verdict = HEAL_NAME_SPLIT,
      .split = HEAL_SPLIT_TYPE },
    { "two inodes, a majority", .inode = { 5, 6, 6 }, .verdict = HEAL_NAME_EXISTS, .right = 6, .wrong = 1 },
    { "cut off: one of the inodes has no other name", .children = 2, .dirty = 3, .inode = { 5, 6 }, .kept = 1,
      .verdict = HEAL_NAME_EXISTS, .right = 2, .wrong = 1 },
    { "all are blamed: the union", .is_merge = true, .inode = { 0, 0, 5 }, .verdict = HEAL_NAME_EXISTS, .right = 4,
      .wrong = 3 },
    { "all are blamed: no majority counts", .is_merge = true, .inode = { 5, 6, 6 }, .verdict = HEAL_NAME_SPLIT,
      .split = HEAL_SPLIT_GFID },
    { "all are blamed: policy majority", .is_merge = true, .inode = { 5, 6, 6 }, .policy = HEAL_POLICY_MAJORITY,
      .verdict = HEAL_NAME_EXISTS, .right = 6, .wrong = 1 },
    { "all are blamed: a child is chosen", .is_merge = true, .inode = { 5, 6, 6 },
      .choice = { .how = HEAL_CHOOSE_CHILD, .child = 0 }, .verdict = HEAL_NAME_EXISTS, .right = 1, .wrong = 6 },
    { "all are blamed: the bigger", .children = 2, .is_merge = true, .inode = { 5, 6 }, .size = { 1, 2 },
      .choice = { .how = HEAL_CHOOSE_BIGGER }, .verdict = HEAL_NAME_EXISTS, .right = 2, .wrong = 1 },
    { "an entry without gfid takes that of the others", .inode = { 5, 99, 5 }, .verdict = HEAL_NAME_EXISTS, .right = 5,
      .wrong = 2 },
    { "a voter that fails", .inode = { 5, 0, 5 }, .away = 2, .verdict = HEAL_NAME_UNDECIDED },
};

static void fill_name(const struct name_example *e, unsigned count)
{
    memset(&answers, 0, sizeof(answers));
    answers.child_count = count;
    answers.asked = mask_all(count);
    for_each_child(i, mask_all(count) & ~e->away)
    {
        if (e->inode[i] == 99)
            answers.no_gfid |= bit(i);
        else if (!e->inode[i])
            answers.absent |= bit(i);
        else
            answers.ok |= bit(i);
        answers.stat[i] = (struct iatt) { .mode = e->inode[i] < 0 ? S_IFDIR : S_IFREG, .size = e->size[i], .nlink = 1 };
        answers.stat[i].gfid.bytes[15] = (uint8_t)abs(e->inode[i]);
    }
}

static void one_name_by_the_table(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(name_examples); i++) {
        const struct name_example *e = &name_examples[i];
        struct example directory = { .children = e->children, .policy = e->policy };
        struct heal_set set = set_of(&directory);
        const struct heal_name_facts facts = { .kept = e->kept, .elsewhere = e->elsewhere };
        struct heal_judgement parent = {
            .verdict = e->is_merge ? VERDICT_MERGE : VERDICT_HEAL,
            .taking_part = mask_all(set.child_count),
            .sources = e->is_merge ? 0 : mask_all(set.child_count) & ~e->blamed,
            .dirty = e->dirty,
            .accused = e->is_merge ? mask_all(set.child_count) : e->blamed,
        };
        struct heal_name_judgement ret;

        fill_name(e, set.child_count);
        heal_judge_name(&set, &parent, &answers, &facts, &e->choice, &ret);
        if (ret.verdict != e->verdict || ret.right != e->right || ret.wrong != e->wrong || ret.split != e->split)
            fail_msg("%s: verdict %d (not %d), right %u (%u), wrong %u (%u), split %u (%u)", e->what, ret.verdict,
                     e->verdict, ret.right, e->right, ret.wrong, e->wrong, ret.split, e->split);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_by_the_table),
        cmocka_unit_test(metadata_by_the_table),
        cmocka_unit_test(names_by_the_table),
        cmocka_unit_test(a_data_count_of_a_directory_is_about_its_names),
        cmocka_unit_test(counters_that_make_no_sense_are_marks),
        cmocka_unit_test(a_damaged_copy_is_no_source),
        cmocka_unit_test(a_copy_that_the_witness_blames_is_no_source),
        cmocka_unit_test(one_name_by_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
