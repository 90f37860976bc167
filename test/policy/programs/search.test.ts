import { describe } from "node:test";
import { tells } from "./told.ts";

describe("grep", () => {
  tells({
    "grep -rn foo . --include='*.ts' --exclude-dir=node_modules": "allow; read *.ts; read .",
    "grep -rn foo . --include=*.ts": "allow; read *.ts; read .",
    "grep -rh . --include='.env*'": "ask; read .env*; read .",
    "rg --hidden -g '*.pem' -g '!*.md' KEY": "ask; read .; read *.pem",
    "rg --files --hidden -g '.env*'": "allow; read .",
    "grep --f*=.env foo": "ask; word.leading-glob --f*=.env",
    "grep --file=.env* a.ts": "ask; read .env*; read a.ts",
    "grep -r foo": "allow; read .",
    "grep foo": "allow",
    "grep -e foo -e bar a": "allow; read a",
    "grep -5 foo a": "allow; read a",
    "grep -f list /etc/shadow": "ask; read list; read /etc/shadow",
    "grep -f list -r": "allow; read list; read .",
    "grep foo .env": "ask; read .env",
    "grep $X a": "ask; read a; read ?",
    'grep "$X" a': "allow; read a",
    "grep --exclude-from=/etc/shadow foo a": "ask; read /etc/shadow; read a",
    "grep --foo bar a": "ask; option.unknown --foo; read a",
    "rgrep foo": "allow; read .",
    "zgrep foo a.gz": "allow; read a.gz",
    "zgrep -r foo": "ask; option.unknown -r",
    "cd / && grep -r foo": "ask; read /",
  });
});

describe("rg, ag and ack", () => {
  tells({
    "rg -n foo src": "allow; read src",
    "rg foo": "allow; read .",
    "rg --files -g '*.ts' src": "allow; read src",
    "rg -e foo -e bar": "allow; read .",
    "rg -f /etc/shadow .": "ask; read /etc/shadow; read .",
    "rg --pre ./x foo": "ask; option.loads-code ./x; read .",
    "rg --pre=./x foo": "ask; option.loads-code ./x; read .",
    "rg --hostname-bin ./x foo": "ask; option.loads-code ./x; read .",
    "rg -z foo": "ask; option.unknown -z; read .",
    "rg -uuu foo ~": "ask; read /home/dev",
    "rg foo *.ts": "ask; word.leading-glob *.ts; read *.ts",
    'rg "$X" src': "ask; word.dynamic ?; read src",
    "ag -G 'ts$' foo src": "allow; read src",
    "ag --pager ./x foo": "ask; option.loads-code ./x; read .",
    "ag -z foo": "ask; option.unknown -z; read .",
    "ack --ts foo src": "allow; read src",
    "ack --pager=./x foo": "ask; option.loads-code ./x; read .",
    "ack --files-from=list foo": "ask; option.loads-code list; read .",
    "ack -x foo": "ask; option.unknown -x; read .",
    "locate foo": "ask; read /",
  });
});

describe("viewers", () => {
  tells({
    fzf: "ask; operand.unknown input from a terminal",
    "fzf -f foo": "allow",
    "fzf -f foo --preview 'rm -rf /'": "deny; delete -f -r /",
    "fzf -f foo --bind 'start:execute(id)'": "ask; option.loads-code start:execute(id)",
    "hexyl -n 64 a": "allow; read a",
    "delta a b": "allow; read a; read b; code settings",
    "delta --pager=id a b": "ask; option.unknown --pager; read a; read b; code settings",
    "eza -la --git": "allow; read .",
    "lsd -l src": "allow; read src",
    "choose -f : 0 -1": "allow",
  });
});

describe("source code tools", () => {
  tells({
    "ctags -R src": "ask; read src; write tags",
    "ctags -R -f - src": "allow; read src",
    "ctags src -x": "ask; read src; write tags",
    "ctags --options=x src": "ask; option.loads-code x; read src; write tags",
    "cloc src": "allow; read src",
    "cloc --extract-with=id src": "ask; option.loads-code id; read src",
    "tokei src": "allow; read src",
    "scc -o out": "ask; write out; read .",
    "ast-grep -p 'f($A)' src": "allow; read src; code check",
    "ast-grep run -p a -r b -U src": "ask; write run; write src; code check",
    "ast-grep scan": "ask; read scan; code check; operand.unknown scan",
    "sg root -c 'rm -rf /'": "deny; command.escapes sg; delete -f -r /",
    "sd a b x": "ask; write x",
    "sd -p a b x": "allow; read x",
    "comby a b .ts": "allow; read .ts",
    "comby a b .ts -in-place": "ask; write .ts",
    "hyperfine 'cat a'": "allow; read a",
    "hyperfine -p 'rm -rf /' ls": "deny; delete -f -r /; read .",
    "semgrep --config auto": "ask; network",
  });
});

describe("calculators and tables", () => {
  tells({
    "bc -l <<< 1/3": "allow",
    "dc -e '2 2 + p'": "allow",
    "dc -e '[!id]x'": "ask; language.unknown [!id]x",
    "dc -e '33aP'": "ask; language.unknown 33aP",
    "dc -f a": "ask; read a; language.unknown dc",
    "echo '2 3 * p' | dc": "allow",
    dc: "ask; code input",
    "m4 a.m4": "ask; code project",
    "envsubst < a": "ask; read a; read /proc/self/environ",
    "datamash sum 1": "allow",
    "mlr --icsv --ojson head -n 4 then sort -f a a.csv":
      "allow; read -n; read 4; read then; read sort; read -f; read a; read a.csv",
    "mlr --icsv put '$x = system(\"id\")' a.csv":
      'ask; operand.unknown put; read $x = system("id"); read a.csv',
    "mlr --icsv cat then tee out a.csv":
      "ask; operand.unknown tee; read then; read tee; read out; read a.csv",
    "mlr --prepipe id cat a": "ask; option.unknown --prepipe",
    "mlr -I --csv cat a.csv": "ask; option.unknown -I",
    "csvcut -c 1,2 a.csv": "allow; read a.csv",
    "csvsql --query 'select 1' a.csv":
      "ask; option.unknown --query; read select 1; read a.csv; command.unfollowed csvsql",
  });
});

describe("markup", () => {
  tells({
    "xmllint --noout a.xml": "allow; read a.xml",
    "xmllint --xpath '//a' a.xml": "allow; read a.xml",
    "xmllint --noent a.xml": "ask; option.unknown -noent; read a.xml",
    "xmllint --shell a.xml": "ask; option.unknown -shell; read a.xml",
    "xmllint --output out a.xml": "ask; write out; read a.xml",
    "xmllint --schema http://x.example/c.xsd a.xml":
      "ask; read http:/x.example/c.xsd; network x.example; read a.xml; network",
    "gron a.json": "allow; read a.json",
    "gron https://x.example/a": "ask; read https:/x.example/a; network x.example",
    "fx a.json .x": "ask; read a.json; code inline",
    "jless a.json": "allow; read a.json",
  });
});
