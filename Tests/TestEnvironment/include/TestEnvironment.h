#ifndef WATCHWORD_TEST_ENVIRONMENT_H
#define WATCHWORD_TEST_ENVIRONMENT_H

#include <spawn.h>

/// The folder below which Kerberos and SoftHSM look for their files in this process. It does not exist before a test makes it.
const char *watchword_test_folder(void);

/// A pipe whose ends no child inherits (pipe2(2)).
int watchword_test_pipe(int ends[2]);

/// Closes all descriptors of a child from `lowest` on.
int watchword_test_close_from(posix_spawn_file_actions_t *actions, int lowest);

#endif
