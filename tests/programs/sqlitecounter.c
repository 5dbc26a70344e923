/* sqlitecounter DB SECONDS      adds one in a transaction as often as it can; prints commits and errors
 * sqlitecounter DB --init       makes the table, with value 0
 * sqlitecounter DB --value      prints the value, after a check of the whole database
 *
 * Run on two mounts of a volume, the value must in the end be the sum of the commits. */
#include "program.h"

#include <sqlite3.h>

enum { BUSY_TIMEOUT_MS = 20000 };

static sqlite3 *open_db(const char *path)
{
    sqlite3 *db;

    if (sqlite3_open(path, &db) != SQLITE_OK)
        wrong("sqlitecounter: %s: %s", path, sqlite3_errmsg(db));
    sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
    return db;
}

/* The result of the statement; an error that is not a busy database is printed. */
static int run(sqlite3 *db, const char *sql)
{
    char *message = NULL;
    int r = sqlite3_exec(db, sql, NULL, NULL, &message);

    if (r != SQLITE_OK && r != SQLITE_BUSY)
        printf("# %s: %s (%d)\n", sql, message ? message : sqlite3_errstr(r), sqlite3_extended_errcode(db));
    sqlite3_free(message);
    return r;
}

static int init(sqlite3 *db)
{
    return run(db, "CREATE TABLE counter (n INTEGER); INSERT INTO counter VALUES (0);") == SQLITE_OK ? EXIT_GOOD
                                                                                                     : EXIT_WRONG;
}

/* The first column of the first row, as text; the caller frees it. */
static char *query(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement;
    char *text;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK || sqlite3_step(statement) != SQLITE_ROW)
        wrong("sqlitecounter: %s: %s", sql, sqlite3_errmsg(db));
    text = strdup((const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return text;
}

static int print_value(sqlite3 *db)
{
    char *state = query(db, "PRAGMA integrity_check"), *value = query(db, "SELECT n FROM counter");
    bool good = strcmp(state, "ok") == 0;

    if (good)
        printf("%s\n", value);
    else
        printf("the database is damaged: %s\n", state);
    free(state);
    free(value);
    return good ? EXIT_GOOD : EXIT_WRONG;
}

static int count(sqlite3 *db, double seconds)
{
    double end_s = now_s() + seconds;
    unsigned long commits = 0, busy = 0, errors = 0;

    while (now_s() < end_s) {
        int r = run(db, "BEGIN IMMEDIATE");

        if (r == SQLITE_OK) {
            r = run(db, "UPDATE counter SET n = n + 1");
            if (r == SQLITE_OK)
                r = run(db, "COMMIT");
            if (r == SQLITE_OK)
                commits++;
            else
                (void)run(db, "ROLLBACK"); /* the first error is the one that counts */
        }
        busy += r == SQLITE_BUSY;
        errors += r != SQLITE_OK && r != SQLITE_BUSY;
    }
    printf("commits=%lu busy=%lu errors=%lu\n", commits, busy, errors);
    return errors || busy ? EXIT_WRONG : EXIT_GOOD;
}

int main(int argc, char **argv)
{
    sqlite3 *db;
    int result;

    if (argc != 3) {
        fprintf(stderr, "usage: sqlitecounter DB SECONDS|--init|--value\n");
        return EXIT_USAGE;
    }
    db = open_db(argv[1]);
    if (strcmp(argv[2], "--init") == 0)
        result = init(db);
    else if (strcmp(argv[2], "--value") == 0)
        result = print_value(db);
    else
        result = count(db, atof(argv[2]));
    sqlite3_close(db);
    return result;
}
