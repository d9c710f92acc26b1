#pragma once

/// Limits the memory and the files of this process and of those it starts. Ends the process if that fails.
void sandbox_limit(void);

/// Lets this process only compute, and use its open descriptors. Ends the process if that fails; has no effect on
/// architectures without a list of system calls.
void sandbox_close(void);
