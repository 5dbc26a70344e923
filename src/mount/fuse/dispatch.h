/* mount/fuse/dispatch.h - from a message of the kernel to the function that serves it. */
#pragma once

struct request_in;

/* Takes over `in`: checks its length, serves it at once (forget, interrupt) or in a fiber, and frees it. */
void dispatch(struct request_in *in);
