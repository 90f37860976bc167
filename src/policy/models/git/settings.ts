/** Sections of git's settings that name programs to run, hosts to reach or more files of settings. */
const OBEYED_SECTIONS = new Set(
  `alias browser credential credentialcache difftool extensions filter gpg guitool hook http imap include includeif instaweb lfs
  man mergetool pager protocol safe sendemail ssh tar trailer url`.split(/\s+/),
);
/** Settings of that kind in sections that also hold others; `*` stands for a name in between. */
const OBEYED = new Set(
  `core.alternaterefscommand core.askpass core.attributesfile core.editor core.fsmonitor core.gitproxy core.hookspath core.pager
  core.sshcommand core.worktree diff.external diff.*.command diff.*.textconv gc.prunecommand init.templatedir
  interactive.difffilter merge.*.driver receive.procreceiverefs remote.*.proxy remote.*.receivepack remote.*.uploadpack
  remote.*.vcs sequence.editor submodule.*.update uploadpack.packobjectshook web.browser`.split(/\s+/),
);

/** Whether git on the host would run, load or reach what this setting says. */
export function isObeyed(key: string): boolean {
  const folded = key.toLowerCase();
  const [section = ""] = folded.split(".", 1);
  return OBEYED_SECTIONS.has(section) || OBEYED.has(patternOf(folded, section));
}

const patternOf = (key: string, section: string): string => {
  const last = key.slice(key.lastIndexOf(".") + 1);
  return `${section}.${section.length + last.length + 1 === key.length ? "" : "*."}${last}`;
};

/** Settings that only change what is shown, whatever their value. */
const SHOWN_SECTIONS = new Set(["advice", "color", "column", "i18n", "status", "versionsort"]);
const SHOWN = new Set(
  `blame.coloring blame.date blame.showemail blame.showroot branch.sort core.abbrev core.commentchar core.ignorecase
  core.precomposeunicode core.preloadindex core.quotepath core.untrackedcache core.whitespace diff.algorithm
  diff.autorefreshindex diff.colormoved diff.colormovedws diff.context diff.dirstat diff.dstprefix diff.ignoresubmodules
  diff.indentheuristic diff.interhunkcontext diff.mnemonicprefix diff.noprefix diff.relative diff.renamelimit diff.renames
  diff.srcprefix diff.statgraphwidth diff.statnamewidth diff.submodule diff.suppressblankempty diff.wordregex
  diff.wserrorhighlight gc.auto grep.column grep.extendedregexp grep.fullname grep.linenumber grep.patterntype grep.threads
  init.defaultbranch log.abbrevcommit log.date log.decorate log.follow log.graphcolors log.initialdecorationset log.mailmap
  log.showroot maintenance.auto merge.conflictstyle merge.renames merge.stat pack.threads rerere.enabled stash.showpatch
  stash.showstat tag.sort user.email user.name`.split(/\s+/),
);
/** Those that are harmless with these values only. */
const HARMLESS_VALUES: Readonly<Record<string, readonly string[]>> = {
  "commit.gpgsign": ["false", "0", "no"],
  "core.editor": ["true", ":"],
  "core.fsmonitor": ["false", "0", "no", ""],
  "core.hookspath": ["/dev/null"],
  "core.pager": ["cat", ""],
  "log.showsignature": ["false", "0", "no"],
  "pager.branch": ["false", "0", "no", "cat", ""],
  "pager.diff": ["false", "0", "no", "cat", ""],
  "pager.log": ["false", "0", "no", "cat", ""],
  "pager.show": ["false", "0", "no", "cat", ""],
  "pager.status": ["false", "0", "no", "cat", ""],
  "tag.gpgsign": ["false", "0", "no"],
};

/** `key=value` for one run, as after `git -c`. */
export function isHarmless(setting: string): boolean {
  const equals = setting.indexOf("=");
  const key = (equals === -1 ? setting : setting.slice(0, equals)).toLowerCase();
  const [section = ""] = key.split(".", 1);
  if (SHOWN.has(key) || SHOWN_SECTIONS.has(section)) return true;
  return (
    equals !== -1 &&
    Object.hasOwn(HARMLESS_VALUES, key) &&
    HARMLESS_VALUES[key]?.includes(setting.slice(equals + 1)) === true
  );
}
