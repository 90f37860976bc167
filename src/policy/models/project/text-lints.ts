import type { Model } from "../model.ts";
import {
  addresses,
  allOf,
  always,
  checks,
  named,
  only,
  shaped,
  type Also,
  verbs,
  writesUnless,
} from "./parts.ts";

/** Linters that only read: what they are given, and settings that are no code. */
const reads = (options: string, more: Partial<Model> = {}): Model => ({
  options,
  operands: "read*",
  tells: "--version --help -h",
  ...more,
});
/** Rules as a text, which name no file of more rules. */
const YAML_RULES = /^(?![\s\S]*extends:\s*["']?[./~])[\s\S]*$/;

/** What it finds is tried out at the services that it is for. */
const verified: Also = ({ options }) =>
  options.some(({ name }) => name === "-n" || name === "--no-verify") ? [] : [{ kind: "network", hosts: [] }];

const TERRAFORM: Model = {
  options: "-chdir=in",
  singleDash: true,
  tells: "version -version --version -v -help --help -h",
  commands: {
    fmt: {
      options: "-check -diff -list=? -recursive -no-color -write=",
      singleDash: true,
      operands: "check*",
      fixed: ["settings"],
      also: writesUnless("-check"),
    },
    // It starts programs that were downloaded.
    validate: always("project"),
    version: { options: "-json", singleDash: true },
    ...named("providers graph output show console state workspace", always("network", "project")),
    ...named(
      "init get login logout plan apply destroy import refresh taint untaint test force-unlock metadata modules query",
      always("network", "project"),
    ),
  },
};

export const TEXT_LINTS: Readonly<Record<string, Model>> = {
  shellcheck: reads(
    `-a -x -s: -S: -e: -i: -o: -f: -C? -W: -P:read --check-sourced --color=? --include= --exclude= --extended-analysis= --format= --list-optional --norc --rcfile=loads
     --enable= --source-path=read --shell= --severity= --wiki-link-count= --external-sources`,
  ),
  hadolint: reads(
    `-f: -t: --ignore= --format= --failure-threshold= --no-color --no-fail --error= --warning= --info= --style= --trusted-registry= --require-label= --strict-labels
     --disable-ignore-pragma --verbose --file-path-in-report= -c:loads --config=loads`,
  ),
  yamllint: reads(
    "-d: -f: -s --config-data= --format= --strict --no-warnings --list-files -c:loads --config-file=loads",
    {
      also: shaped({ "-d": YAML_RULES, "--config-data": YAML_RULES }),
    },
  ),
  actionlint: {
    ...checks(
      "-no-color -color -oneline -verbose -debug -format= -ignore= -shellcheck=loads -pyflakes=loads -config-file=loads -init-config!project -stdin-filename= -version",
      {
        singleDash: true,
        tells: "--version -version --help -help -h",
      },
    ),
  },
  shfmt: reads(
    `-l -d -w!write -s -i: -p -f --list --diff --write!write --simplify --indent= --posix --find --language-dialect= --case-indent
     --binary-next-line --space-redirects --keep-padding --func-next-line --filename= --minify --to-json --from-json --apply-ignore`,
  ),
  terraform: TERRAFORM,
  tofu: TERRAFORM,
  tflint: checks(
    "--recursive --format= -f: --no-color --color --minimum-failure-severity= --enable-rule= --disable-rule= --only= --chdir=in --filter= --fix!project --init!install -c:loads --config=loads --var-file=loads --var=loads --call-module-type=",
  ),
  "ansible-lint": checks(
    "-q -v -p -x: -t: -w: -f: --offline --nocolor --strict --profile= --exclude= --skip-list= --warn-list= --tags= --format= -L -T -R -r:loads -c:loads --config-file=loads --rules-dir=loads --project-dir=loads --fix=?!write --write=?!write -i:read",
    { operands: "check*|." },
  ),
  "ansible-playbook": always("network", "project"),
  "cfn-lint": checks(
    "-t:check --template=check -r: -i: -e --regions= --ignore-checks= --include-checks= --format= -f: --non-zero-exit-code= -a:loads --append-rules=loads --config-file=loads -o:loads --override-spec=loads --output-file=write -u!network --update-specs!network",
  ),
  buf: {
    options: "--debug --timeout= --log-format=",
    tells: "--version --help -h",
    commands: {
      ...named(
        "lint build breaking ls-files",
        checks(
          "--error-format= --path=check --exclude-path= --against=loads --config=loads -o:write --output=write --format=",
          { also: addresses },
        ),
      ),
      format: checks(
        "-d --diff --exit-code --path=check --exclude-path= --error-format= -w!write --write!write -o:write --output=write --config=loads",
      ),
      generate: always("project", "network"),
      ...named("push registry mod dep curl login beta", always("network")),
    },
  },
  protoc: { ...always("project"), tells: "--version --help -h" },
  sqlfluff: {
    options: "",
    tells: "--version --help -h",
    commands: {
      lint: checks(
        "-d: -q -v -n -f: -p: -r: -e: --dialect= --format= --rules= --exclude-rules= --templater= --processes= --nocolor --disable-progress-bar --nofail --ignore= --config=loads --write-output=write --library-path=loads",
      ),
      ...named("rules dialects version", { operands: "data*", fixed: ["settings"] }),
      ...named("fix format", always("project")),
      ...named("parse render", checks("-d: --dialect= --config=loads")),
    },
  },
  codespell: checks(
    "-q: -s -c -f -H -d -x:read -I:read -L: -S: -C: -A: -B: --skip= --ignore-words-list= --ignore-words=read --quiet-level= --summary --count --check-filenames --check-hidden --builtin= --context= -i: --dictionary=read -D:read -w!write --write-changes!write --config=loads --toml=loads",
    { operands: "check*|." },
  ),
  typos: checks(
    "-q -v -j: --format= --hidden --no-ignore --exclude= --files --sort --color= --locale= --isolated --diff -w!write --write-changes!write --config=loads -c:loads --write-file=write --no-unicode --force-exclude",
    { operands: "check*|." },
  ),
  vale: checks(
    "--output= --minAlertLevel= --no-exit --glob= --no-wrap --no-global --ignore-syntax --filter= --ext= --config=loads --sources=loads",
    { also: allOf(only({ "--output": "CLI JSON line" }), verbs("sync fix")) },
  ),
  ...named(
    "editorconfig-checker ec",
    checks(
      "-v -no-color -exclude= -disable-indentation -disable-trim-trailing-whitespace -disable-end-of-line -disable-insert-final-newline -disable-max-line-length -ignore-defaults -verbose -debug -format= -dry-run -init!project -config=loads",
      { singleDash: true },
    ),
  ),
  "detect-secrets": {
    options: "-v",
    tells: "--version --help -h",
    commands: {
      scan: checks(
        "--all-files --exclude-files= --exclude-lines= --no-verify --only-verified!network --list-all-plugins --string= --baseline=write -p:loads --plugin=loads -f:loads --filter=loads --force-use-all-plugins --only-allowlisted -n",
        { also: verified },
      ),
      audit: always("ask"),
    },
  },
  gitleaks: {
    options: "",
    tells: "version --version --help -h",
    commands: {
      ...named(
        "detect protect dir git stdin",
        checks(
          "-v -s:check --source=check --no-git --no-banner --no-color --redact=? --verbose --log-opts=loads --exit-code= --max-target-megabytes= --staged --config=loads -c:loads -r:write --report-path=write -f: --report-format= --report-template=loads -b:read --baseline-path=read --log-level= -l:",
        ),
      ),
      version: {},
    },
  },
  ...named("trivy grype syft snyk semgrep checkov tfsec kubeval kubeconform", {
    ...always("network"),
    tells: "--version -v version --help -h",
  }),
  pandoc: {
    ...always("ask"),
    tells:
      "--version -v --help -h --list-input-formats --list-output-formats --list-extensions --list-highlight-languages",
  },
};
