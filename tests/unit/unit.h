/* What every cmocka program includes: cmocka.h and the headers it needs before itself.
 *
 *     #include "unit/unit.h"
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
