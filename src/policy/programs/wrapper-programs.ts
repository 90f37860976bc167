import type { Arg, Found, Model, Use } from "./program-model.ts";
import { assigned, joined, onlyBash, PRINTS_ENVIRONMENT } from "./shell-builtins.ts";

/** Runs its operands as a command, and does nothing else. */
const plain = (options = ""): Model => ({ options, operands: "command*", strict: true, abbreviates: true });

/** Variables first, then a command; without one it prints all variables. */
function environment(use: Use): readonly Found[] {
  const at = use.operands.findIndex(({ value }) => !/^[^=]+=/.test(value));
  const variables = at === -1 ? use.operands : use.operands.slice(0, at);
  const command = at === -1 ? [] : use.operands.slice(at);
  const split = use.options.filter(({ name }) => name === "-S" || name === "--split-string");
  return [
    ...assigned(use, variables, false),
    ...split.flatMap(({ value }) =>
      value === null ? [] : [use.doubt("option.unknown", value), ...use.shell(joined([value, ...command]))],
    ),
    ...(command.length > 0 ? use.command(command) : split.length > 0 ? [] : PRINTS_ENVIRONMENT(use)),
  ];
}

/** The words make one text for a shell. */
function asText(use: Use): readonly Found[] {
  const [first, ...rest] = use.operands;
  if (first === undefined) return [];
  const text = joined([first, ...rest]);
  return [...use.shell(text), ...onlyBash(text, use)];
}

/** A lock, then a command; or a text behind -c. */
function locked(use: Use): readonly Found[] {
  const [lock, ...rest] = use.operands;
  if (lock === undefined) return [];
  const isText = rest[0]?.value === "-c" || rest[0]?.value === "--command";
  const text: Arg | undefined = isText ? rest[1] : undefined;
  const lockFile: Found = { kind: "write", path: use.place(lock), span: lock.span };
  return [lockFile, ...(text === undefined ? use.command(rest) : use.shell(text))];
}

const SUDO: Model = {
  ...plain("-ABbEHknPSsiKlv -u: -g: -h: -p: -C: -D: -R: -r: -t: -T: -U: --user= --group= --preserve-env=?"),
  fixed: ["privilege"],
};

export const WRAPPERS: Readonly<Record<string, Model>> = {
  env: {
    options: `-i -0 -v -u: -C:in -S: --ignore-environment --null --debug --unset= --chdir=in --split-string=
      --block-signal=? --default-signal=? --ignore-signal=?`,
    operands: "data*",
    strict: true,
    also: environment,
  },
  timeout: {
    options: "-fpv -k: -s: --foreground --preserve-status --verbose --kill-after= --signal=",
    operands: "data command*",
    strict: true,
    abbreviates: true,
  },
  nice: plain("-NUM -n: --adjustment="),
  ionice: plain("-t -c: -n: -p:!process -P:!process --class= --classdata= --ignore"),
  chrt: { ...plain("-bfior --batch --fifo --idle --other --rr -p!process"), operands: "data command*" },
  taskset: { ...plain("-a -c --cpu-list --all-tasks -p!process --pid!process"), operands: "data command*" },
  nohup: plain(),
  setsid: plain("-cfw --ctty --fork --wait"),
  stdbuf: plain("-i: -o: -e: --input= --output= --error="),
  unbuffer: plain("-p"),
  time: plain("-pvaqV -o:write -f: --portability --verbose --append --quiet --output=write --format="),
  watch: {
    options: `-bcdegtwx -n: -q: --beep --color --differences=? --errexit --chgexit --interval= --no-title --no-wrap
      --exec --precise`,
    operands: "data*",
    strict: true,
    also: asText,
  },
  flock: {
    options: `-seuxonFv -w: -E: --shared --exclusive --unlock --nonblock --close --no-fork --verbose --wait= --timeout=
      --conflict-exit-code=`,
    operands: "data*",
    strict: true,
    also: locked,
  },
  script: {
    options:
      "-aefq -c:shell -O:write -I:write -B:write -T:write -E: -m: -o: --command=shell --quiet --return --flush --append",
    operands: "write",
    also: (use) =>
      use.options.some(({ name }) => name === "-c" || name === "--command") ? [] : [escapes(use)],
  },
  caffeinate: plain("-dimsu -t:"),
  fakeroot: plain(),
  "xvfb-run": plain("-a --auto-servernum"),
  "dbus-run-session": plain(),
  faketime: { ...plain("-f -m"), operands: "data command*" },
  prlimit: { ...plain(), fixed: ["process"] },
  entr: { ...plain("-acdnprsz"), fixed: ["ask"] },
  sudo: SUDO,
  sudoedit: SUDO,
  doas: SUDO,
  pkexec: SUDO,
  su: {
    options: "-flm -c:shell -s: -g: --command=shell --login --shell=",
    operands: "data*",
    fixed: ["privilege"],
  },
  runuser: { options: "-flm -c:shell -u: -s: -g: --command=shell", operands: "data*", fixed: ["privilege"] },
  chroot: { ...plain("--userspec= --groups= --skip-chdir"), operands: "data command*", fixed: ["privilege"] },
  unshare: {
    ...plain("-mnipuUrfCT --mount --net --pid --user --fork --map-root-user"),
    fixed: ["privilege"],
  },
  nsenter: { ...plain("-amuinpUCrGS -t: --all --target= --mount --net --pid"), fixed: ["privilege"] },
  setpriv: { ...plain("--reuid= --regid= --clear-groups --no-new-privs"), fixed: ["privilege"] },
  capsh: { operands: "data*", fixed: ["privilege"] },
  bwrap: { reads: (use) => [escapes(use)] },
  firejail: { reads: (use) => [escapes(use)] },
  proot: { reads: (use) => [escapes(use)] },
  "systemd-run": { reads: (use) => [escapes(use)] },
};

/** Runs commands in a way that is not followed. */
export const escapes = (use: Use): Found => ({
  kind: "unknown",
  doubt: "command.escapes",
  what: use.program,
  span: use.span,
});
