/* Broken volume files and options, each with the exact sentence a person reads. */
#include "unit/graph/test_graph.h"

struct broken {
    const char *name, *text, *message;
};

#define LEAF "volume l\n type test/leaf\n option note x\nend-volume\n"

static const struct broken refused[] = {
    /* ---- text and tokens ---- */
    { "an_empty_file", "", "x.vol:1: found the end of the file, expected \"volume\" (the file is empty)" },
    { "only_blanks", " \n\t\r\n", "x.vol:3: found the end of the file, expected \"volume\" (the file is empty)" },
    { "only_a_comment", "# nothing", "x.vol:1: found the end of the file, expected \"volume\" (the file is empty)" },
    { "a_back_tick", "volume a\n type t\n option k `hostname`\nend-volume",
      "x.vol:3: found a back-tick, expected none: commands in volume files are not run, write what they print instead" },
    { "a_back_tick_in_a_comment", LEAF "# `date`\n",
      "x.vol:5: found a back-tick, expected none: commands in volume files are not run, write what they print instead" },
    { "a_back_tick_in_a_string", "volume \"`id`\"",
      "x.vol:1: found a back-tick, expected none: commands in volume files are not run, write what they print instead" },
    { "a_string_without_an_end", "volume a\n type \"t\n option k v\nend-volume\n",
      "x.vol:2: found a string without an end, expected a closing '\"'" },
    { "a_string_that_ends_with_an_escape", "volume \"a\\\"",
      "x.vol:1: found a string without an end, expected a closing '\"'" },
    { "a_lone_backslash_at_the_end_of_a_string", "volume \"a\\",
      "x.vol:1: found a string without an end, expected a closing '\"'" },
    /* ---- sections ---- */
    { "a_word_instead_of_volume", "brick a\n", "x.vol:1: found \"brick\", expected \"volume\"" },
    { "volume_in_upper_case", "VOLUME a\n type t\n option k v\nend-volume\n",
      "x.vol:1: found \"VOLUME\", expected \"volume\" (keywords are written in lower case)" },
    { "volume_as_a_string", "\"volume\" a\n", "x.vol:1: found the string \"volume\", expected \"volume\"" },
    { "an_option_before_any_section", "option k v\n", "x.vol:1: found \"option\", expected \"volume\"" },
    { "end_volume_without_a_section", LEAF "end-volume\n", "x.vol:5: found \"end-volume\", expected \"volume\"" },
    { "text_after_the_last_section", LEAF "\n\nand more", "x.vol:7: found \"and\", expected \"volume\"" },
    { "a_section_without_a_name", "volume\n type t\n",
      "x.vol:2: found the keyword \"type\", expected the name of the section (a keyword used as a word goes in quotes)" },
    { "a_keyword_as_name", "volume volume\n type t\n",
      "x.vol:1: found the keyword \"volume\", expected the name of the section (a keyword used as a word goes in quotes)" },
    { "an_empty_name", "volume \"\"\n type t\n", "x.vol:1: found an empty name, expected the name of the section" },
    { "a_file_that_ends_after_volume", "volume",
      "x.vol:1: found the end of the file, expected the name of the section" },
    { "a_file_that_ends_after_the_name", "volume a\n",
      "x.vol:2: found the end of the file, expected \"type\" directly after the name of the section" },
    { "two_sections_of_one_name", LEAF LEAF,
      "x.vol:5: found a second section \"l\", expected another name (the first is on line 1)" },
    { "an_option_before_type", "volume a\n option k v\n type t\nend-volume\n",
      "x.vol:2: found \"option\", expected \"type\" directly after the name of the section" },
    { "subvolumes_before_type", LEAF "volume a\n subvolumes l\n type t\nend-volume\n",
      "x.vol:6: found \"subvolumes\", expected \"type\" directly after the name of the section" },
    { "no_type_at_all", "volume a\nend-volume\n",
      "x.vol:2: found \"end-volume\", expected \"type\" directly after the name of the section" },
    { "type_in_wrong_case", "volume a\n Type t\n",
      "x.vol:2: found \"Type\", expected \"type\" directly after the name of the section (keywords are written in lower case)" },
    { "two_names", "volume a b\n type t\n",
      "x.vol:1: found \"b\", expected \"type\" directly after the name of the section" },
    { "a_type_without_a_word", "volume a\n type\n option k v\nend-volume\n",
      "x.vol:3: found the keyword \"option\", expected the type of the section (a keyword used as a word goes in quotes)" },
    { "a_file_that_ends_after_type", "volume a\n type",
      "x.vol:2: found the end of the file, expected the type of the section" },
    { "a_second_type", "volume a\n type t\n option k v\n type u\nend-volume\n",
      "x.vol:4: found a second \"type\" in section \"a\", expected one" },
    { "two_words_after_type", "volume a\n type t u\n option k v\nend-volume\n",
      "x.vol:2: found \"u\", expected \"option\", \"subvolumes\" or \"end-volume\"" },
    { "a_type_alone", "volume a\n type t\nend-volume\n",
      "x.vol:3: found \"end-volume\", expected at least one \"option\" or \"subvolumes\" in section \"a\"" },
    { "no_end_volume", "volume a\n type t\n option k v\n",
      "x.vol:4: found the end of the file, expected \"option\", \"subvolumes\" or \"end-volume\"" },
    { "the_next_section_before_end_volume", "volume a\n type t\n option k v\nvolume b\n",
      "x.vol:4: found \"volume\", expected \"option\", \"subvolumes\" or \"end-volume\"" },
    { "end_volume_in_wrong_case", "volume a\n type t\n option k v\nEnd-Volume\n",
      "x.vol:4: found \"End-Volume\", expected \"option\", \"subvolumes\" or \"end-volume\" (keywords are written in lower case)" },
    { "end_volume_in_two_words", "volume a\n type t\n option k v\nend volume\n",
      "x.vol:4: found \"end\", expected \"option\", \"subvolumes\" or \"end-volume\"" },
    /* ---- options ---- */
    { "an_option_without_key_and_value", "volume a\n type t\n option\nend-volume\n",
      "x.vol:4: found the keyword \"end-volume\", expected the name of an option (a keyword used as a word goes in quotes)" },
    { "an_option_without_a_value", "volume a\n type t\n option k\nend-volume\n",
      "x.vol:4: found the keyword \"end-volume\", expected the value of the option (a keyword used as a word goes in quotes)" },
    { "a_value_that_is_a_keyword", "volume a\n type t\n option k volume\nend-volume\n",
      "x.vol:3: found the keyword \"volume\", expected the value of the option (a keyword used as a word goes in quotes)" },
    { "a_value_of_two_words", "volume a\n type t\n option k v w\nend-volume\n",
      "x.vol:3: found \"w\", expected \"option\", \"subvolumes\" or \"end-volume\"" },
    { "a_string_glued_to_a_word", "volume a\n type t\n option k \"v\"w\nend-volume\n",
      "x.vol:3: found \"w\", expected \"option\", \"subvolumes\" or \"end-volume\"" },
    { "option_in_wrong_case", "volume a\n type t\n OPTION k v\nend-volume\n",
      "x.vol:3: found \"OPTION\", expected \"option\", \"subvolumes\" or \"end-volume\" (keywords are written in lower case)" },
    { "a_file_that_ends_in_an_option", "volume a\n type t\n option k",
      "x.vol:3: found the end of the file, expected the value of the option" },
    { "an_equals_sign", "volume a\n type t\n option k = v\nend-volume\n",
      "x.vol:3: found \"v\", expected \"option\", \"subvolumes\" or \"end-volume\"" },
    /* ---- subvolumes ---- */
    { "subvolumes_without_a_name", LEAF "volume a\n type t\n subvolumes\nend-volume\n",
      "x.vol:8: found \"end-volume\", expected the name of at least one subvolume" },
    { "an_unknown_subvolume", LEAF "volume a\n type t\n subvolumes zzz\nend-volume\n",
      "x.vol:7: found subvolume \"zzz\", expected the name of a section above this one" },
    { "a_misspelt_subvolume",
      "volume brick1\n type test/leaf\n option note x\nend-volume\nvolume a\n type t\n subvolumes brick2\nend-volume\n",
      "x.vol:7: found subvolume \"brick2\", expected the name of a section above this one (did you mean \"brick1\"?)" },
    { "a_subvolume_defined_later",
      "volume a\n type t\n subvolumes b\nend-volume\nvolume b\n type t\n option k v\nend-volume\n",
      "x.vol:3: found subvolume \"b\", expected the name of a section above this one" },
    { "a_section_that_contains_itself", "volume a\n type t\n subvolumes a\nend-volume\n",
      "x.vol:3: found subvolume \"a\", expected the name of a section above this one" },
    { "a_subvolume_twice", LEAF "volume a\n type t\n subvolumes l l\nend-volume\n",
      "x.vol:7: found subvolume \"l\" twice, expected each one once" },
    { "subvolumes_twice", LEAF "volume a\n type t\n subvolumes l\n subvolumes l\nend-volume\n",
      "x.vol:8: found a second \"subvolumes\" in section \"a\", expected one list of all names" },
    { "subvolumes_in_wrong_case", LEAF "volume a\n type t\n SubVolumes l\nend-volume\n",
      "x.vol:7: found \"SubVolumes\", expected \"option\", \"subvolumes\" or \"end-volume\" (keywords are written in lower case)" },
    { "commas_between_subvolumes",
      LEAF "volume m\n type test/leaf\n option note x\nend-volume\nvolume a\n type t\n subvolumes l,m\nend-volume\n",
      "x.vol:11: found subvolume \"l,m\", expected the name of a section above this one" },
    /* ---- types ---- */
    { "an_unknown_type", LEAF "volume a\n type nothing/such\n subvolumes l\nend-volume\n",
      "x.vol:6: found type \"nothing/such\" in section \"a\", expected a known type" },
    { "a_misspelt_type", LEAF "volume a\n type features/read-olny\n subvolumes l\nend-volume\n",
      "x.vol:6: found type \"features/read-olny\" in section \"a\", expected a known type (did you mean \"features/read-only\"?)" },
    { "a_type_in_wrong_case", LEAF "volume a\n type Features/UTime\n subvolumes l\nend-volume\n",
      "x.vol:6: found type \"Features/UTime\" in section \"a\", expected a known type (did you mean \"features/utime\"?)" },
    { "unify", LEAF "volume a\n type cluster/unify\n subvolumes l\nend-volume\n",
      "x.vol:6: type \"cluster/unify\" of section \"a\" is not there: use cluster/distribute over the same subvolumes, without namespace and scheduler" },
    { "stripe", LEAF "volume a\n type cluster/stripe\n subvolumes l\nend-volume\n",
      "x.vol:6: type \"cluster/stripe\" of section \"a\" is not there: GlusterFS removed it in 6.0; use cluster/distribute" },
    { "disperse", LEAF "volume a\n type cluster/disperse\n subvolumes l\nend-volume\n",
      "x.vol:6: type \"cluster/disperse\" of section \"a\" is not there: erasure coding is not there yet; use cluster/replicate" },
    { "bdb", "volume a\n type storage/bdb\n option k v\nend-volume\n",
      "x.vol:2: type \"storage/bdb\" of section \"a\" is not there: GlusterFS removed it in 3.4; copy the files to a directory and use storage/posix" },
    { "legacy_client", "volume a\n type protocol/legacy-client\n option k v\nend-volume\n",
      "x.vol:2: type \"protocol/legacy-client\" of section \"a\" is not there: GlusterFS removed it in 3.4; use protocol/client" },
    { "compression", LEAF "volume a\n type features/cdc\n subvolumes l\nend-volume\n",
      "x.vol:6: type \"features/cdc\" of section \"a\" is not there: compression on the wire is not there yet; leave the section out on both sides" },
    { "shard", LEAF "volume a\n type features/shard\n subvolumes l\nend-volume\n",
      "x.vol:6: type \"features/shard\" of section \"a\" is not there: sharding is not there yet; switch it off for volumes without sharded files" },
    { "nfs", LEAF "volume a\n type nfs/server\n subvolumes l\nend-volume\n",
      "x.vol:6: type \"nfs/server\" of section \"a\" is not there: the built-in NFS server is gone; export the mount with nfs-ganesha" },
    { "glusterd_vol",
      "volume management\n type mgmt/glusterd\n option working-directory /var/lib/glusterd\nend-volume\n",
      "x.vol:2: type \"mgmt/glusterd\" of section \"management\" is not there: it is no part of a file system; start mortard for management" },
    /* ---- numbers of subvolumes ---- */
    { "a_leaf_with_a_subvolume", LEAF "volume a\n type test/leaf\n subvolumes l\nend-volume\n",
      "x.vol:5: section \"a\" has 1 subvolume, test/leaf takes none" },
    { "no_subvolume_where_one_is_needed", "volume a\n type features/utime\n option noatime on\nend-volume\n",
      "x.vol:1: section \"a\" has 0 subvolumes, features/utime needs at least 1" },
    { "two_subvolumes_where_one_is_allowed",
      LEAF
      "volume m\n type test/leaf\n option note x\nend-volume\nvolume a\n type features/utime\n subvolumes l m\nend-volume\n",
      "x.vol:9: section \"a\" has 2 subvolumes, features/utime takes at most 1" },
    { "distribution_over_two",
      LEAF
      "volume m\n type test/leaf\n option note x\nend-volume\nvolume a\n type cluster/dht\n subvolumes l m\nend-volume\n",
      "x.vol:9: section \"a\" (cluster/dht): distribution over several subvolumes is not there yet, use one" },
    /* ---- values ---- */
    { "a_number_that_is_a_word", "volume l\n type test/leaf\n option note x\n option number many\nend-volume\n",
      "x.vol:4: section \"l\": \"many\" is not a number (option \"number\", 1 to 16)" },
    { "a_number_out_of_range", "volume l\n type test/leaf\n option number 17\nend-volume\n",
      "x.vol:3: section \"l\": \"17\" is out of range (option \"number\", 1 to 16)" },
    { "a_negative_number", "volume l\n type test/leaf\n option number -1\nend-volume\n",
      "x.vol:3: section \"l\": \"-1\" is out of range (option \"number\", 1 to 16)" },
    { "a_value_that_init_refuses", "volume l\n type test/leaf\n option number 13\nend-volume\n",
      "x.vol:1: section \"l\" (test/leaf): number 13 is not lucky, use another" },
    { "a_bool_that_is_none", LEAF "volume a\n type features/utime\n option noatime maybe\n subvolumes l\nend-volume\n",
      "x.vol:7: section \"a\": \"maybe\" is not on or off (option \"noatime\")" },
    { "a_size_without_b",
      LEAF "volume a\n type performance/io-cache\n option cache-size 32M\n subvolumes l\nend-volume\n",
      "x.vol:7: section \"a\": \"32M\" is not a size in bytes or with KB, MB, GB, TB, PB (option \"cache-size\", at least 4194304)" },
    { "a_negative_size",
      LEAF "volume a\n type performance/io-cache\n option max-file-size -1\n subvolumes l\nend-volume\n",
      "x.vol:7: section \"a\": \"-1\" is not a size in bytes or with KB, MB, GB, TB, PB (option \"max-file-size\")" },
    { "a_size_out_of_range",
      LEAF "volume a\n type performance/readdir-ahead\n option rda-request-size 1MB\n subvolumes l\nend-volume\n",
      "x.vol:7: section \"a\": \"1MB\" is out of range (option \"rda-request-size\", 4096 to 131072)" },
    { "a_percentage_past_100",
      LEAF "volume a\n type debug/error-gen\n option failure 101%\n subvolumes l\nend-volume\n",
      "x.vol:7: section \"a\": \"101%\" is out of range (option \"failure\", 0 to 100 percent)" },
    { "a_time_with_an_unknown_suffix",
      LEAF "volume a\n type features/barrier\n option barrier-timeout 2minutes\n subvolumes l\nend-volume\n",
      "x.vol:7: section \"a\": \"2minutes\" is not a time in seconds or with s, m, h, d, w (option \"barrier-timeout\")" },
    { "a_word_that_is_no_choice",
      LEAF "volume a\n type cluster/distribute\n option lookup-unhashed never\n subvolumes l\nend-volume\n",
      "x.vol:7: section \"a\": \"never\" is not one of: auto, yes, no, enable, disable, 1, 0, on, off (option \"lookup-unhashed\")" },
    { "an_unknown_operation",
      LEAF "volume a\n type debug/error-gen\n option enable read,wirte\n subvolumes l\nend-volume\n",
      "x.vol:5: section \"a\" (debug/error-gen): option \"enable\": \"wirte\" is not an operation, write names such as read, write, lookup" },
    /* ---- features that are not there ---- */
    { "write_once_switched_on", LEAF "volume a\n type features/worm\n option worm on\n subvolumes l\nend-volume\n",
      "x.vol:5: section \"a\" (features/worm): option \"worm on\" is refused: write-once volumes are not there yet; switch features.worm off" },
    { "leases_switched_on", LEAF "volume a\n type features/leases\n option leases enable\n subvolumes l\nend-volume\n",
      "x.vol:5: section \"a\" (features/leases): option \"leases enable\" is refused: leases for SMB and NFS servers are not there yet; switch features.leases off" },
    { "quota_switched_on", LEAF "volume a\n type features/quota\n option server-quota on\n subvolumes l\nend-volume\n",
      "x.vol:5: section \"a\" (features/quota): option \"server-quota on\" is refused: quotas are not there yet; switch features.quota off" },
    { "bitrot_switched_on",
      LEAF "volume a\n type features/bitrot-stub\n option bitrot enable\n subvolumes l\nend-volume\n",
      "x.vol:5: section \"a\" (features/bitrot-stub): option \"bitrot enable\" is refused: bit rot detection is not there yet; switch features.bitrot off" },
    { "changelog_switched_on",
      LEAF "volume a\n type features/changelog\n option changelog on\n subvolumes l\nend-volume\n",
      "x.vol:5: section \"a\" (features/changelog): option \"changelog on\" is refused: the change log is not there yet; switch changelog.changelog off" },
    { "trash_switched_on", LEAF "volume a\n type features/trash\n option trash on\n subvolumes l\nend-volume\n",
      "x.vol:5: section \"a\" (features/trash): option \"trash on\" is refused: the trash directory is not there yet; switch features.trash off" },
    { "a_switch_that_is_neither_on_nor_off",
      LEAF "volume a\n type features/trash\n option trash perhaps\n subvolumes l\nend-volume\n",
      "x.vol:5: section \"a\" (features/trash): \"perhaps\" is not on or off (option \"trash\")" },
};

static void it_is_refused_with_this_sentence(void **state)
{
    const struct broken *b = *state;
    struct test *t = mem_zalloc(sizeof(*t));

    test_open(t);
    t->env = env_real_new(t->log, 1);
    assert_int_not_equal(0, test_try_build(t, b->text));
    assert_string_equal(b->message, t->err.text);
    assert_null(t->graph);
    reply_free(t->r);
    env_real_free(t->env);
    test_close(t);
    mem_free(t);
}

/* Files that work all the same, with a line in the log. */
static const struct broken warned[] = {
    { "an_unknown_option", "volume l\n type test/leaf\n option zzzz 1\nend-volume\n",
      "W [unknown-option] 0-l: x.vol:3: option \"zzzz\" is not known to test/leaf and is left out" },
    { "a_misspelt_option", "volume l\n type test/leaf\n option nubmer 2\nend-volume\n",
      "W [unknown-option] 0-l: x.vol:3: option \"nubmer\" is not known to test/leaf and is left out (did you mean \"number\"?)" },
    { "an_option_in_wrong_case", "volume l\n type test/leaf\n option Number 2\nend-volume\n",
      "W [unknown-option] 0-l: x.vol:3: option \"Number\" is not known to test/leaf and is left out (did you mean \"number\"?)" },
    { "a_misspelt_alias", "volume l\n type test/leaf\n option remrak x\nend-volume\n",
      "W [unknown-option] 0-l: x.vol:3: option \"remrak\" is not known to test/leaf and is left out (did you mean \"remark\"?)" },
    { "an_empty_value", "volume l\n type test/leaf\n option number \"\"\nend-volume\n",
      "W [option-without-value] 0-l: x.vol:3: option \"number\" has an empty value and is left out" },
    { "an_option_without_effect", "volume l\n type test/leaf\n option old-habit 1\nend-volume\n",
      "I [option-ignored] 0-l: x.vol:3: option \"old-habit\" has no effect: it never did anything" },
    { "a_cache_that_is_gone", LEAF "volume a\n type performance/symlink-cache\n subvolumes l\nend-volume\n",
      "W [passed-through] 0-a: x.vol:6: type \"performance/symlink-cache\" is not there: it makes nothing faster here; leave the section out" },
    { "a_cache_that_is_not_needed", LEAF "volume a\n type performance/stat-prefetch\n subvolumes l\nend-volume\n",
      "I [passed-through] 0-a: performance/md-cache does nothing here: the kernel's caches do its work" },
};

static void it_works_with_this_line_in_the_log(void **state)
{
    const struct broken *b = *state;
    struct test *t = mem_zalloc(sizeof(*t));

    test_open(t);
    t->env = env_real_new(t->log, 1);
    test_build(t, b->text);
    assert_logged(t, b->message);
    graph_free(t->graph);
    reply_free(t->r);
    env_real_free(t->env);
    test_close(t);
    mem_free(t);
}

static struct CMUnitTest case_of(const struct broken *b, CMUnitTestFunction fn)
{
    return (struct CMUnitTest) { .name = b->name, .test_func = fn, .initial_state = (void *)b };
}

static struct CMUnitTest tests[ARRAY_SIZE(refused) + ARRAY_SIZE(warned)];

int main(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(refused); i++)
        tests[i] = case_of(&refused[i], it_is_refused_with_this_sentence);
    for (unsigned i = 0; i < ARRAY_SIZE(warned); i++)
        tests[ARRAY_SIZE(refused) + i] = case_of(&warned[i], it_works_with_this_line_in_the_log);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
