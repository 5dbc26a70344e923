/* rpc/control.h - what a process is asked over the unix socket of its option --socket-file, in our own program
 * (PROGRAM_MORTAR).
 *
 *   CONTROL request:  string<64> verb, string<255> subject (name of a translator; "" means all it concerns)
 *   CONTROL reply:    i32 op_ret, u32 op_errno, opaque<> a dict in the old form: what there is to say, "error" a sentence
 *
 * Verbs: heal-status (cluster/replicate/heal_daemon.h says the keys, with the prefix "N." for the set number N; "sets" is
 * their number), heal-index, heal-full, heal-stop. Who may open the socket may ask.
 */
#pragma once

#define CONTROL_VERB_MAX     64
#define CONTROL_SUBJECT_MAX  255
#define CONTROL_ANSWER_BYTES (16 * 1024 * 1024)
