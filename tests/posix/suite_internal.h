/* What the runner (posix_suite.c), the probes (features.c) and the checks (suite.c) share. */
#ifndef MORTAR_TESTS_POSIX_SUITE_INTERNAL_H
#define MORTAR_TESTS_POSIX_SUITE_INTERNAL_H

#include "suite.h"

/* How the process of a case ends. */
enum { EXIT_PASSED = 0, EXIT_FAILED = 1, EXIT_SKIPPED = 77 };

struct posix_case *suite_cases(void);
/* Called once in the process of a case, before the case: reasons go to report_fd. other is the directory of the case
 * through another mount, absolute, or NULL; it is borrowed for the life of the process. */
void suite_begin(int report_fd, uint32_t features, uint32_t demanded, const char *other);
/* Defined with the cases: whether they need a second mount. */
extern const bool suite_needs_other;
const char *suite_feature_name(enum feature feature);

/* Tries every feature in the working directory, which is left empty; a bit per feature. */
uint32_t features_probe(void);

#endif
