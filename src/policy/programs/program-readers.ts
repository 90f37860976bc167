import { ARCHIVE_READERS, COMPRESS_READERS } from "./archive-programs.ts";
import { ARGUMENT_READERS } from "./argument-checks.ts";
import { AWK_READERS } from "./awk-program.ts";
import { BUILD_READERS } from "./build-tools.ts";
import { CONTAINER_READERS } from "./container-programs.ts";
import { CURL_WGET_READERS } from "./curl-wget.ts";
import { DATA_READERS } from "./data-programs.ts";
import { FD_XARGS_READERS } from "./fd-xargs.ts";
import { FILE_CHANGES_READERS, FILE_LISTING_READERS } from "./file-changes.ts";
import { FIND_READERS } from "./find-program.ts";
import { FORGE_READERS, GIT_NESTED_READERS, VCS_READERS } from "./version-control-programs.ts";
import { GIT_CHANGES_READERS } from "./git-changes.ts";
import { GIT_READERS } from "./git-program.ts";
import { GIT_SETTINGS_READERS } from "./git-settings.ts";
import { JQ_READERS } from "./jq-program.ts";
import { NETWORK_READERS, SOCKET_READERS } from "./network-programs.ts";
import { NODE_READERS } from "./node-programs.ts";
import { PACKAGE_READERS } from "./package-programs.ts";
import type { Check, Reader } from "./program-model.ts";
import { INTERPRETER_READERS } from "./python-programs.ts";
import { ROW_CHECKS } from "./row-checks.ts";
import { SEARCH_READERS } from "./search-programs.ts";
import { SED_READERS } from "./sed-program.ts";
import { SHELL_BUILTINS_READERS } from "./shell-builtins.ts";
import { SHELL_READERS } from "./shell-programs.ts";
import { SSH_READERS } from "./ssh-programs.ts";
import { SYSTEM_READERS } from "./system-programs.ts";
import { TEXT_READERS } from "./text-programs.ts";
import { TYPESCRIPT_READERS } from "./typescript-compiler.ts";
import { WRAPPER_READERS } from "./wrapper-programs.ts";

/**
 * Readers that rows can name in `reader` or `also`: for programs with a grammar of their own, and for what rows
 * cannot express.
 */
const READERS: ReadonlyMap<string, Reader> = new Map(
  [
    ARCHIVE_READERS,
    ARGUMENT_READERS,
    AWK_READERS,
    BUILD_READERS,
    COMPRESS_READERS,
    CONTAINER_READERS,
    CURL_WGET_READERS,
    DATA_READERS,
    FD_XARGS_READERS,
    FILE_CHANGES_READERS,
    FILE_LISTING_READERS,
    FIND_READERS,
    FORGE_READERS,
    GIT_CHANGES_READERS,
    GIT_NESTED_READERS,
    GIT_READERS,
    GIT_SETTINGS_READERS,
    INTERPRETER_READERS,
    JQ_READERS,
    NETWORK_READERS,
    NODE_READERS,
    PACKAGE_READERS,
    SEARCH_READERS,
    SED_READERS,
    SHELL_BUILTINS_READERS,
    SHELL_READERS,
    SOCKET_READERS,
    SSH_READERS,
    SYSTEM_READERS,
    TEXT_READERS,
    TYPESCRIPT_READERS,
    VCS_READERS,
    WRAPPER_READERS,
  ].flatMap((readers) => Object.entries(readers)),
);

/** Finds the reader of a row. Throws for an unknown name: a mistake of the row. */
export function readerOf(check: Check): Reader {
  if (typeof check === "string") {
    const reader = READERS.get(check);
    if (reader === undefined) throw new Error(`no reader is called ${check}`);
    return reader;
  }
  const [name, parameters] = check;
  if (!Object.hasOwn(ROW_CHECKS, name)) throw new Error(`no check is called ${name}`);
  return ROW_CHECKS[name as keyof typeof ROW_CHECKS](parameters);
}
