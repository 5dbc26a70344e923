/* sim/damage.h - what people and broken file systems do to a brick behind its back: names go, whole trees go, extended
 * attributes are stripped, modes and owners change, files lose their contents. No counter says so. */
#pragma once

#include "sim/disk.h"

/* One to three such things, to inodes and names picked by random; never to index directories or the root itself. The
 * brick does not run. */
void disk_damage(struct disk *d, disk_random_fn random, void *arg);
