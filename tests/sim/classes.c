#include "sim/classes.h"
#include "sim/simdisk.h"

extern const struct translator_class client_class, server_class, replicate_class, locks_class, io_threads_class,
    arbiter_class, thin_arbiter_class, utime_class;

static const struct translator_class *const list[] = {
    &simdisk_class, &simindex_class,   &saboteur_class, &tap_class,          &client_class,    &server_class,
    &locks_class,   &io_threads_class, &arbiter_class,  &thin_arbiter_class, &replicate_class, &utime_class,
    NULL,
};

const class_list sim_classes = list;
