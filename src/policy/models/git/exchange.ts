import type { Arg, Found, Model, Use } from "../model.ts";
import { shownFiles } from "./paths.ts";
import { forcedRefs } from "./refs.ts";

const URL = /^(?:(?:https?|ssh|git|ftps?):\/\/(?:[^@/]*@)?|[\w.-]+@)(\[[0-9a-f:.]+\]|[\w.-]+)/i;

/** The other repository: a host where one is named, a helper that runs a program (`ext::`), else what the settings call so. */
function reached(use: Use): readonly Found[] {
  const named = use.options.filter(({ name }) => name === "--repo").map(({ value }) => value);
  const texts = [...named, ...use.operands].filter((arg): arg is Arg => arg !== null);
  const hosts = texts.flatMap(({ value }) => URL.exec(value)?.[1]?.toLowerCase() ?? []);
  const helpers = texts.filter(({ value }) => /^\w+::/.test(value));
  return [{ kind: "network", hosts }, ...helpers.map((arg) => use.doubt("option.loads-code", arg))];
}

/** Where patches go, if not into the folder. */
const PLACED: ReadonlySet<string> = new Set(["--stdout", "-o", "--output-directory"]);

const FETCHES = `-vqaftpk46 -j: -o: --verbose --quiet --all --append --upload-pack=!ask --force --tags --no-tags --jobs= --prune
  --no-prune --recurse-submodules=? --no-recurse-submodules --dry-run --keep --progress --no-progress --depth= --shallow-since=
  --shallow-exclude= --deepen= --unshallow --update-shallow --refmap= --server-option= --ipv4 --ipv6 --negotiation-tip=
  --show-forced-updates --no-show-forced-updates --set-upstream`;

/** Commands that give to other repositories or take from them. */
export const EXCHANGE: Readonly<Record<string, Model>> = {
  push: {
    options: `-nvqdu46 -f!forced -o: --repo= --all --branches --mirror!forced --delete --tags --follow-tags --no-follow-tags
      --dry-run --porcelain --force!forced --force-with-lease=?!forced --no-force-with-lease --force-if-includes
      --no-force-if-includes --recurse-submodules= --no-recurse-submodules --thin --no-thin --receive-pack=!ask --exec=!ask
      --set-upstream --progress --no-progress --prune --verify --no-verify --signed=?!ask --no-signed --atomic --no-atomic
      --push-option= --ipv4 --ipv6 --verbose --quiet`,
    operands: "data*",
    fixed: ["remote"],
    also: (use) => [...reached(use), ...forcedRefs(use)],
  },
  fetch: {
    options: `${FETCHES} -munP --no-all --atomic --multiple --prefetch --prune-tags --write-fetch-head --no-write-fetch-head
      --update-head-ok --refetch --negotiate-only --filter= --auto-maintenance --no-auto-maintenance --auto-gc --no-auto-gc --stdin`,
    operands: "data*",
    also: reached,
  },
  pull: {
    options: `${FETCHES} -n -r? -s: -X: -S?!ask --rebase=? --no-rebase --ff --no-ff --ff-only --commit --no-commit --edit!ask --no-edit --squash
      --no-squash --stat --no-stat --log=? --no-log --signoff --no-signoff --cleanup= --verify --verify-signatures!ask
      --autostash --no-autostash --strategy= --strategy-option= --gpg-sign=?!ask --no-gpg-sign --allow-unrelated-histories`,
    operands: "data*",
    fixed: ["local"],
    also: reached,
  },
  clone: {
    options: `-vqnls46 -j: -o: -b: -u:!ask -c:!ask --verbose --quiet --progress --reject-shallow --no-reject-shallow --no-checkout
      --checkout --bare --mirror --local --no-local --no-hardlinks --shared --recurse-submodules=?!ask --recursive=?!ask --jobs=
      --template=loads --reference=read --reference-if-able=read --dissociate --origin= --branch= --revision= --upload-pack=!ask
      --depth= --shallow-since= --shallow-exclude= --single-branch --no-single-branch --no-tags --tags --shallow-submodules
      --no-shallow-submodules --separate-git-dir=write --config=!ask --server-option= --ipv4 --ipv6 --filter=
      --also-filter-submodules --remote-submodules --no-remote-submodules --sparse --bundle-uri= --ref-format=`,
    operands: "data target",
    fixed: ["local"],
    also: reached,
  },
  "ls-remote": {
    options: `-qtbh -o: --quiet --upload-pack=!ask --exec=!ask --tags --heads --branches --refs --get-url --sort= --exit-code
      --symref --server-option=`,
    operands: "data*",
    also: reached,
  },
  "request-pull": { options: "-p", operands: "data*", also: reached },
  "format-patch": {
    options: `-nNkspM -v: -o:target -NUM --output-directory=target --stdout --numbered --no-numbered --signoff --keep-subject
      --reroll-count= --cover-letter --subject-prefix= --rfc=? --suffix= --base= --root --zero-commit --stat --no-stat`,
    operands: "data*",
    also: (use) => [
      ...shownFiles(use),
      ...(use.options.some(({ name }) => PLACED.has(name))
        ? []
        : [{ kind: "write", path: use.folder } as const]),
    ],
  },
  "send-email": { operands: "read*", fixed: ["network"] },
  "imap-send": { options: "-vq --curl --no-curl --folder= --list", fixed: ["network"] },
  daemon: { operands: "data*", fixed: ["network"] },
  svn: { operands: "data*", fixed: ["network"] },
  p4: { operands: "data*", fixed: ["network"] },
  "fast-export": {
    options: "--all --export-marks=write --import-marks=read --progress= --no-data",
    operands: "data*",
    also: shownFiles,
  },
};
