import type { Model } from "../model.ts";
import { always, checks, named, only, writesUnless } from "./parts.ts";

const PROVE = checks(
  `-l -b -r -v -q -Q -s -f -m -o -c -w -t -T -W -j: -h -H --lib --blib --recurse --verbose --quiet --QUIET --shuffle --failures --comments --merge --color --nocolor --count
   --nocount --jobs= --timer --directives --normalize --ignore-exit --parse --trap --ext= --reverse --rules= --norc --dry -D --state=!project
   -a:write --archive=write -e:loads --exec=loads -I:loads -M:loads -P:loads -S:loads --harness=loads --formatter=loads --source=loads --rc=loads --statefile=write
   --tapversion=`,
);

export const SCRIPTING: Readonly<Record<string, Model>> = {
  prove: PROVE,
  ...named("cpan cpanm carton", { ...always("install"), tells: "--version --help -V" }),
  bats: checks(
    "-r -t -p -T -c -x -j: -f: --recursive --tap --pretty --timing --count --jobs= --filter= --filter-status= --filter-tags= --trace --verbose-run --print-output-on-failure --no-tempdir-cleanup -F: --formatter= --show-output-of-passing-tests --abort -o:write --output=write --report-formatter=loads --setup-suite-file=loads --gather-test-outputs-in=write --line-reference-format=",
    {
      also: only({ "-F --formatter": "pretty tap tap13 junit" }),
    },
  ),
  busted: checks(
    "-v -t: -c -o: --verbose --tags= --exclude-tags= --filter= --filter-out= --no-coverage --shuffle --seed= --repeat= --pattern= -r: --run= -p: --lua=loads -m:loads --lpath=loads --cpath=loads --helper=loads -f:loads --config-file=loads --loaders=loads -e:code -C:loads --directory=loads",
    {
      also: only({ "-o": "plainTerminal utfTerminal TAP json junit gtest" }),
    },
  ),
  luacheck: checks(
    "-q -g -u -r -a --std= --globals= --read-globals= --ignore= --only= --enable= --codes --ranges --no-color --formatter=loads --max-line-length= --no-max-line-length -j: --config=loads --no-config --cache=write --exclude-files= --include-files=",
  ),
  stylua: checks(
    "--check --verify --color= -g: --glob= --output-format= --num-threads= --respect-ignores -a --allow-hidden -f:loads --config-path=loads -s --search-parent-directories --stdin-filepath=read",
    {
      also: writesUnless("--check"),
    },
  ),
};
