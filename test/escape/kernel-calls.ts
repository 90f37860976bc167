/**
 * System calls made by number, so that no library refuses before the kernel does. `call` returns "ok" or the error's
 * name; ENOSYS if the number does not exist on this machine.
 */
export const PRELUDE = `
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
arm = os.uname().machine == "aarch64"
def call(x86, aarch64, *args):
    number = aarch64 if arm else x86
    if number is None: return "ENOSYS"
    ctypes.set_errno(0)
    value = libc.syscall(ctypes.c_long(number), *[ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in args])
    return "ok" if value >= 0 else errno.errorcode[ctypes.get_errno()]
`;

/** One shell line that runs this Python after the prelude. */
export const python = (code: string): string =>
  `python3 -c '${`${PRELUDE}${code}`.replaceAll("'", "'\\''")}'`;

/** One shell line that prints the answer of each call after its name. */
export const answers = (calls: Readonly<Record<string, string>>): string =>
  python(
    Object.entries(calls)
      .map(([name, call]) => `print(${JSON.stringify(name)}, ${call}, flush=True)`)
      .join("\n"),
  );
