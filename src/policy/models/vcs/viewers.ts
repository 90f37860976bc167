import type { Model } from "../model.ts";
import { hooked } from "./lfs.ts";

/** Programs around git: what shows differences, what works in a window of its own, what runs hooks. */
export const VIEWERS: Readonly<Record<string, Model>> = {
  delta: {
    options: `-ns -w: --line-numbers --side-by-side --dark --light --color-only --raw --navigate --hyperlinks --no-gitconfig
      --diff-so-fancy --diff-highlight --keep-plus-minus-markers --syntax-theme= --width= --tabs= --wrap-max-lines=
      --max-line-length= --true-color= --list-languages --list-syntax-themes --show-config --show-colors --show-syntax-themes
      --paging=!ask --pager=!ask --diff-args=!ask --config=loads --features=!ask`,
    operands: "read*",
    fixed: ["settings"],
    tells: "-V --version -h --help",
  },
  difft: {
    options: `--color= --display= --width= --context= --background= --syntax-highlight= --ignore-comments --list-languages
      --language= --override= --skip-unchanged --exit-code --check-only --strip-cr= --sort-paths --tab-width= --byte-limit=
      --graph-limit= --parse-error-limit= --missing-as-empty`,
    operands: "read read",
    tells: "-V --version -h --help",
  },
  tig: { operands: "data*", fixed: ["local", "settings"], tells: "-v --version -h --help" },
  lazygit: {
    options: "-p:in --path=in",
    operands: "data*",
    fixed: ["local", "settings"],
    tells: "-v --version -h --help",
  },
  gitk: { operands: "data*", fixed: ["settings", "ask"] },
  "pre-commit": {
    options: "--color=",
    tells: "-V --version -h --help",
    commands: {
      run: {
        options: `-av -c:loads --config=loads --all-files --files=read --verbose --show-diff-on-failure --hook-stage= --color=
          --from-ref= --to-ref= --fail-fast`,
        operands: "data*",
        fixed: ["network", "project", "local"],
      },
      install: { options: "-f -t: --overwrite --install-hooks", operands: "data*", also: hooked },
      uninstall: { options: "-t:", also: hooked },
      "install-hooks": { fixed: ["install"] },
      autoupdate: { options: "--bleeding-edge --freeze --repo=", fixed: ["network"] },
      "validate-config": { operands: "read*" },
      "validate-manifest": { operands: "read*" },
      "sample-config": {},
      gc: { fixed: ["ask"] },
      clean: { fixed: ["ask"] },
    },
  },
};
