/* What each server does before it serves. */
#ifndef PAWL_EXAMPLES_PROCESS_PROCESS_H
#define PAWL_EXAMPLES_PROCESS_PROCESS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The first that a server calls.  Opens /dev/null as each of the descriptors 0 to 2 that is closed:
 * else a socket or a file gets the number, and messages are written to it.  A write that fails ends
 * nothing, for a client may go while it is answered, and a file may be as long as the process may
 * make it.  As many clients may come as the system lets the process have. */
void prepare_process(void);

/* Makes the file, empty and its owner's alone, where there is none; the mode of one that is there
 * stays.  The mode counts from the beginning, also for the entries of an access control list that
 * the directory gives to new files, beside which the umask does not count.  Where it cannot be made
 * the library's own opening says why. */
void make_private_file(const char* path);

#ifdef __cplusplus
}
#endif
#endif
