/* A library as programs are linked with: a store that is safe to fork, with functions under names
 * of libc's. */
#pragma once

/* What its constructor maps where the program is started as PROGRAM do constructor FILE. */
extern char* mapped_by_constructor;

/* Each holds the library's mutex, which its fork handlers take as well. */
int library_map(const char* path);
int library_commit(void);
int library_make(const char* path);

/* From now on its fork handlers commit, and have a thread map this file. */
void library_works_around_forks(const char* path);
/* How often that failed. */
int library_failures(void);

/* Stands before the function of that name in libc. */
int getsubopt(char** options, char* const* tokens, char** value);
int msync(void* address, unsigned long length, int flags);
