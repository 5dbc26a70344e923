/* The smallest unit test: shows the shape of one, and that the build and the runner work. */
#include "unit/unit.h"

static void cmocka_runs_a_test(void **state)
{
    assert_int_equal(sizeof(uint64_t), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cmocka_runs_a_test),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
