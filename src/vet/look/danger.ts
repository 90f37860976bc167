/**
 * Signs of danger in the text of a script, and what each weighs: by when the script runs, and which other signs it
 * has.
 */
import { anyOfHosts } from "../known-names.ts";
import { lineAt, type LookRule } from "./looked-at.ts";

const pattern = (...parts: readonly string[]): RegExp => new RegExp(parts.join("|"), "i");

const FETCHER = "(?:curl|wget|fetch|aria2c|lwp-request|http(?:ie)?\\s+get)";
const SHELL =
  "(?:sudo\\s+(?:-\\w{1,20}\\s{1,5}){0,4})?(?:/(?:usr/)?bin/)?(?:env\\s+)?(?:ba|z|da|k|a)?sh\\b|(?:sudo\\s+)?(?:/usr/bin/)?(?:python[\\d.]*|node|perl|ruby|php)\\b(?:\\s+-)?";
const DECODER =
  "(?:base64\\s+(?:-d|-D|--decode)|openssl\\s+(?:enc\\s+)?[^|\\n]{0,40}-d|xxd\\s+-r|gunzip|zcat|rev|tr\\s)";

/** Calls that decode, in many languages. */
const DECODING =
  "(?:(?:MIME::Base64::)?decode_base64|(?:Base64\\.)?(?:strict_|urlsafe_)?decode64|base64_decode|gzinflate|hex2bin|atob|(?:base64\\.)?b64decode|bytes\\.fromhex|unhexlify|Buffer\\.from|Base64\\.getDecoder\\(\\)\\.decode|StdEncoding\\.DecodeString|mime\\.unb64)";

const FETCH_AND_RUN = pattern(
  `\\b${FETCHER}\\b[^\\n|]{0,400}\\|(?:[^\\n|]{0,100}\\|)?\\s*(?:${SHELL})(?=\\s*(?:$|[-;&|"'\x60)\\\\]|\\s))`,
  `(?:${SHELL})\\s+(?:-\\w{1,20}\\s{1,5}){0,4}["']?(?:<\\(|\\$\\(|\`)\\s*${FETCHER}\\b`,
  `\\beval\\s+["']?(?:\\$\\(|\`)\\s*${FETCHER}\\b`,
  `(?:^|[;&|\\s])(?:\\.|source)\\s+<\\(\\s*${FETCHER}\\b`,
  `\\b${FETCHER}\\b[^\\n]{0,300}(?:-o|-O|--output|>)\\s*(?:["']?([\\w./~$-]{1,100})["']?)[^]{0,200}?(?:chmod\\s+(?:\\+x|[0-7]*7[0-7]*)\\s+["']?\\1|(?:ba|z|da)?sh\\s+["']?\\1|(?:^|[;&|\\n]\\s*)["']?(?:\\./)?\\1)`,
  "\\b(?:iex|invoke-expression)\\b[^\\n]{0,80}(?:iwr|irm|invoke-(?:webrequest|restmethod)|downloadstring|net\\.webclient)",
  "(?:iwr|irm|invoke-(?:webrequest|restmethod)|downloadstring)[^\\n]{0,200}\\|\\s*(?:iex|invoke-expression)",
  "\\bpowershell(?:\\.exe)?\\b[^\\n]{0,120}-e(?:nc|ncodedcommand|c)?\\s+[a-z0-9+/=]{40,}",
  "\\bcertutil\\b[^\\n]{0,60}-urlcache|\\bmshta\\s+(?:https?:|vbscript:)|\\bregsvr32\\b[^\\n]{0,60}https?:|\\bbitsadmin\\b[^\\n]{0,60}/transfer",
  "\\bexec\\s*\\(\\s*(?:\\w+\\.)*(?:urlopen|requests\\.get|get)\\s*\\([^\\n]{0,200}(?:\\.read\\(|\\.text|\\.content)",
  "\\beval\\s*\\(\\s*(?:await\\s+)?(?:\\(\\s*await\\s+)?fetch\\s*\\(",
  "\\bpython[\\d.]*\\s+-c\\s+[^\\n]{0,200}(?:urlopen|urllib|requests)[^\\n]{0,200}exec|\\bpython[\\d.]*\\s+-c\\s+[^\\n]{0,80}exec\\([^\\n]{0,200}(?:urlopen|urllib|requests)",
);
const DECODED = pattern(
  "\\bpowershell(?:\\.exe)?\\b[^\\n]{0,120}-e(?:nc|ncodedcommand|c)?\\s+[a-z0-9+/=]{40,}",
  `\\b${DECODER}[^\\n|]{0,100}\\|(?:[^\\n|]{0,60}\\|)?\\s*(?:${SHELL})(?=\\s*(?:$|[-;&|"'\x60)\\\\]|\\s))`,
  `(?:(?:ba|z|da)?sh\\s+-c|eval)\\s+["']?(?:\\$\\(|\`)[^\\n]{0,4000}${DECODER}`,
  "\\beval\\s*\\(\\s*(?:(?:window|global|globalThis|self)\\.)?(?:atob|unescape|decodeURIComponent|base64_decode|gzinflate|str_rot13|gzuncompress|hex2bin)\\s*\\(",
  "\\beval\\s*\\(\\s*(?:new\\s+)?Buffer(?:\\.from)?\\s*\\([^\\n]{0,4000}?['\"](?:base64|hex)['\"]",
  "\\b(?:new\\s+)?Function\\s*\\(\\s*(?:['\"][^'\"\\n]{0,40}['\"]\\s*,\\s*)*(?:atob|Buffer\\.from|unescape)\\s*\\(",
  "\\bexec\\s*\\(\\s*(?:compile\\s*\\(\\s*)?(?:__import__\\s*\\(\\s*['\"](?:base64|zlib|codecs|marshal|binascii)['\"]\\s*\\)\\s*\\.|(?:base64|zlib|codecs|marshal|binascii|bz2|lzma)\\.)(?:\\w*decode\\w*|decompress|loads|unhexlify)\\s*\\(",
  "\\bexec\\s*\\(\\s*bytes\\.fromhex\\s*\\(",
  "\\bexec\\s*\\(\\s*['\"][^'\"\\n]{0,40}['\"]\\.join\\s*\\(\\s*(?:map\\s*\\(\\s*)?chr\\b",
  "\\beval\\s*\\([^;\\n]{0,2000}?(?:String\\.fromCharCode|\\.reverse\\(\\)\\s*\\.join)\\b",
  "\\b(?:exec|execSync|spawn|spawnSync|system|popen)\\s*\\(\\s*(?:atob|Buffer\\.from|base64\\.b64decode)\\s*\\(",
  `\\b(?:eval|exec|system|qx|shell_exec|passthru|popen|instance_eval|class_eval|os\\.execute|loadstring)\\b\\s*[({]?\\s*(?:new\\s+String\\s*\\(\\s*)?${DECODING}\\s*\\(`,
  // Decoded into a name that is then run.
  `(?<![\\w$])([A-Za-z_$]\\w{0,30})\\s*:?=\\s*[^;=\\n]{0,60}${DECODING}\\s*\\([^]{0,800}?(?:\\b(?:eval|execSync|system|popen|Function|shell_exec|os\\.execute|runInThisContext|_compile|subprocess\\.\\w{1,20})|(?<![\\w.)/])exec)\\s*\\(?\\s*["'\`]?\\$?\\1\\b`,
  `\\b(\\w{1,30})=["']?(?:\\$\\(|\`)[^\\n]{0,400}(?:${DECODER}|printf\\s[^\\n]{0,20}(?:\\\\[0-7x][0-9a-f]{1,3}){6})[^]{0,400}?\\b(?:eval|(?:ba|z|da)?sh\\s+-c)\\s+["']?\\$\\{?\\2\\b`,
  "\\b(?:ba|z|da)?sh\\b[^\\n]{0,40}<<<\\s*[\"']?(?:\\$\\(|`)[^\\n]{0,400}(?:base64|xxd|openssl)",
);
/** A connection in place of a shell's own stdin and stdout, in other languages. */
const OTHER_SHELLS_AWAY: readonly string[] = [
  "\\bsockaddr_in\\b[^]{0,400}\\bSTDIN\\s*,\\s*[\"']?[<>+]{1,2}&",
  "\\bTCPSocket\\.(?:open|new)\\b[^]{0,120}\\bgets\\b[^]{0,120}\\b(?:popen|exec|system|spawn)\\b",
  "\\bTCPSocket\\.(?:open|new)\\b[^]{0,300}\\b(?:popen|exec|spawn)\\b[^]{0,80}(?:sh\\b|cmd\\b|\\.fileno)",
  "\\bfsockopen\\s*\\([^]{0,300}(?:exec|proc_open|popen|passthru|system)\\s*\\(\\s*[\"'](?:/bin/)?(?:ba)?sh\\b",
  "/inet/(?:tcp|udp)/0/(?!localhost|127\\.)",
  "\\bopenssl\\s+s_client\\b[^\\n]{0,200}\\|\\s*(?:/bin/)?(?:ba)?sh\\b|(?:/bin/)?(?:ba)?sh\\b[^\\n]{0,60}\\|\\s*openssl\\s+s_client\\b",
  "\\btelnet\\b[^\\n|]{0,100}\\|\\s*(?:/bin/)?(?:ba)?sh\\b",
  "\\b(?:net|tls)(?:['\"]\\))?\\.(?:connect|createConnection|Socket)\\b[^]{0,600}\\.pipe\\(\\s*\\w{1,40}\\.stdin\\b",
  "\\bspawn\\s*\\(\\s*['\"](?:/bin/)?(?:ba)?sh['\"][^]{0,300}\\b(?:net|tls)(?:['\"]\\))?\\.(?:connect|createConnection)\\b[^]{0,300}\\.pipe\\(",
  "\\bnet\\.Dial\\b[^]{0,300}\\.Std(?:in|out)\\s*=\\s*\\w{1,40}\\b",
  "\\bTcpStream::connect\\b[^]{0,400}from_raw_fd\\b[^]{0,200}(?:/bin/)?sh\\b",
];
const REVERSE_SHELL = pattern(
  "/dev/(?:tcp|udp)/(?!localhost\\b|127\\.)[\\w.$\\{-]",
  "\\bbash\\s+-i\\s*>&",
  "\\b(?:nc|ncat|netcat|socat)\\b[^\\n]{0,100}(?:\\s-\\w*[ec]\\s*\\S*(?:sh|cmd)|exec:)",
  "\\bmkfifo\\b[^\\n]{0,100}\\bnc\\b",
  "\\bdup2\\s*\\(\\s*\\w+\\.fileno\\(\\)[^]{0,300}(?:/bin/(?:ba)?sh|pty\\.spawn)",
  "\\.pipe\\(\\s*sh\\.stdin|\\bsh\\.stdout\\.pipe\\(\\s*(?:client|socket)",
  "\\bnew-object\\s+(?:system\\.)?net\\.sockets\\.tcpclient",
  ...OTHER_SHELLS_AWAY,
);
const EXFIL_HOST =
  /(?<=[\w-]\.)(?:oast\.(?:fun|site|live|pro|me|online|us)|oastify\.com|burpcollaborator\.net|interact\.sh|interactsh\.com|requestbin\.(?:net|com)|m\.pipedream\.net|dnslog\.(?:cn|pw)|ceye\.io|canarytokens\.com|bxss\.(?:me|in)|beeceptor\.com|requestcatcher\.com|hookbin\.com)\b|\bwebhook\.site\b|\bdiscord(?:app)?\.com\/api\/webhooks\/\d|\bapi\.telegram\.org\/bot|\bhooks\.slack\.com\/services\/T[A-Z0-9]|\bpastebin\.com\/raw\/|https?:\/\/[\w.-]+\.(?:ngrok(?:-free)?\.(?:io|app|dev)|trycloudflare\.com|serveo\.net|loca\.lt)\b|\btransfer\.sh\/|\bgofile\.io\b|\bix\.io\b|\b0x0\.st\b|\banonfiles\b|\btermbin\.com|\brentry\.co\/\w+\/raw|\bpaste\.ee\/|\bhastebin\.com\/raw/;
const RAW_ADDRESS =
  /\bhttps?:\/\/(?!(?:127\.|0\.0\.0\.0|10\.|192\.168\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.))(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?:\/|\b)|\bhttps?:\/\/0x[0-9a-f]{8}\b|\bhttps?:\/\/\d{8,10}(?:[/:]|\b)/i;
const OF_PEOPLE: readonly string[] = [
  '(?:~|\\$\\{?HOME\\}?|homedir\\(\\)|home_dir\\(\\)|expanduser|Path\\.home\\(\\)|USERPROFILE|process\\.env\\.HOME|env\\("HOME"\\)|Dir\\.home|user\\.home|\\bhome\\b)[^\\n]{0,60}?(?:\\.ssh\\b|\\.aws\\b|\\.gnupg\\b|\\.kube\\b|\\.netrc\\b|\\.git-credentials\\b|\\.pypirc\\b|\\.docker/config|\\.config/gh\\b|\\.config/gcloud\\b|\\.azure\\b|\\.vault-token|\\.bash_history|\\.zsh_history|\\.npmrc\\b|\\.password-store|\\.electrum|\\.ethereum|\\.bitcoin|\\.cargo/credentials|\\.gem/credentials|\\.config/solana|\\.mozilla|\\.config/google-chrome|Library/Keychains)',
  "(?:/|\\b|['\"])\\.ssh/(?:id_\\w+|\\*|known_hosts|config\\b)|\\.ssh['\"]\\s*[,)]|\\bid_(?:rsa|ed25519|ecdsa|dsa)\\b(?!\\.pub)|\\.aws/credentials|\\.aws['\"]\\s*,\\s*['\"]credentials|\\.kube/config|\\.git-credentials|\\.docker/config\\.json|\\.config/gh/hosts|\\.cargo/credentials|\\.gem/credentials|\\.codex/auth\\.json|\\.claude/\\.credentials|\\.gemini/oauth_creds|/opencode/auth\\.json",
];
/** Keys of people; `SECRETS` has those of the system, too. */
const PEOPLES = pattern(...OF_PEOPLE);
const SECRETS = pattern(
  ...OF_PEOPLE,
  "/etc/(?:shadow|passwd|sudoers)\\b|\\blogin\\.keychain|Login Data\\b|\\bcookies\\.sqlite\\b|\\bkey4\\.db\\b|\\bwallet\\.dat\\b|\\bLocal Storage[/\\\\]+leveldb|\\bsecurity\\s+(?:find-generic-password|dump-keychain)",
  "\\b(?:/root|/home/[\\w$*{}]+)/\\.(?:ssh|aws|gnupg|kube|netrc|config/gh)",
  "/(?:proc/(?:self|1|\\d+|\\*)/environ)\\b|/var/run/secrets/kubernetes",
);
const KEY_FILE =
  "\\.(?:ssh|aws|gnupg|kube|netrc|git-credentials|pypirc|npmrc|docker/config|config/gh|config/gcloud|azure|vault-token|bash_history|zsh_history|cargo/credentials|gem/credentials|codex/auth|claude/\\.credentials|claude\\.json|gemini/oauth_creds|local/share/opencode/auth|pgpass|cache/huggingface/token)\\b";
const SENDER = "\\b(?:curl|wget|nc|ncat|netcat|socat)\\b";
/** On one line: a key or the whole environment, and a program that sends it. */
const TAKES = pattern(
  `${KEY_FILE}[^\\n;&]{0,160}\\|[^\\n;&]{0,120}${SENDER}`,
  `${SENDER}[^\\n;|]{0,200}\\s(?:-d|-F|-T|--data[\\w-]{0,20}|--form|--upload-file|--post-file|<)[=\\s]{0,2}[^\\s|;]{0,80}${KEY_FILE}`,
  `${SENDER}[^\\n|]{0,200}(?:\\$\\(\\s*(?:env|printenv)\\s*[)|]|<\\(\\s*env\\b|toJSON\\(\\s*secrets\\s*\\))`,
  `(?:(?:^|[;&|\\n]|\\$\\()\\s*(?:printenv|env)|toJSON\\(\\s*secrets\\s*\\)\\s*\\}\\}["']?)\\s*\\|[^\\n;&]{0,120}${SENDER}`,
);
/** A key in the home folder, which is no test data. */
const PRIVATE_KEY = pattern(
  "(?:~|HOME\\b|homedir|home_dir|HomeDir|expanduser|Path\\.home|user\\.home|USERPROFILE)[^\\n]{0,60}\\.ssh\\b[^\\n]{0,12}\\bid_(?:rsa|dsa|ecdsa|ed25519)\\b(?!\\.pub)",
);
const TOKEN_VARIABLE =
  /\b(?:AWS_SECRET_ACCESS_KEY|GITHUB_TOKEN|GH_TOKEN|NPM_TOKEN|NODE_AUTH_TOKEN|PYPI_TOKEN|TWINE_PASSWORD|CARGO_REGISTRY_TOKEN|OPENAI_API_KEY|ANTHROPIC_API_KEY|VAULT_TOKEN|SSH_AUTH_SOCK|CI_JOB_TOKEN|DOCKER_AUTH_CONFIG|AZURE_CLIENT_SECRET|GOOGLE_APPLICATION_CREDENTIALS)\b/;
const ENVIRONMENT = pattern(
  "JSON\\.stringify\\s*\\(\\s*(?:\\{[^}]{0,60})?process\\.env\\s*[,)}]|(?<!\\benv\\s?[:=]\\s?)\\{\\s*\\.\\.\\.process\\.env\\s*\\}|Object\\.(?:entries|keys)\\s*\\(\\s*process\\.env\\s*\\)|querystring\\.stringify\\s*\\(\\s*process\\.env|util\\.inspect\\s*\\(\\s*process\\.env",
  "(?<!\\benv\\s?=\\s?)(?:json\\.dumps|dict|str|repr|urlencode|list|sorted)\\s*\\(\\s*(?:dict\\s*\\(\\s*)?os\\.environ(?:\\.copy\\(\\)|\\.items\\(\\))?\\s*[,)]|(?:data|json|params)\\s*=\\s*(?:dict\\()?os\\.environ|\\+\\s*\\w{1,20}\\s+for\\s+\\w{1,20}\\s*,\\s*\\w{1,20}\\s+in\\s+os\\.environ\\.items",
  "(?:^|[;&|`\\n]|\\$\\()\\s*(?:env|printenv|export\\s+-p)\\s*(?:\\|\\s*\\w|>>?\\s*[\\w$~/.\"'])|\\bset\\s*\\|\\s*(?:curl|nc|base64)|@<\\(\\s*env|\\$\\(\\s*(?:env|printenv)\\b\\s*[)|]|`(?:env|printenv)\\s*[`|]",
  "\\benv::vars(?:_os)?\\s*\\(\\)|\\bos\\.Environ\\s*\\(\\)|\\bSystem\\.getenv\\s*\\(\\s*\\)|\\bENV\\.(?:to_h|to_a|each|inspect|map)\\b|\\bgetenv\\s*\\(\\s*\\)|\\$_ENV\\b",
);
const METADATA = pattern(
  "169\\.254\\.169\\.254|metadata\\.google\\.internal|100\\.100\\.100\\.200|fd00:ec2::254|169\\.254\\.170\\.2\\b",
  "/(?:var/)?run/(?:docker|containerd/containerd|podman/podman|crio/crio)\\.sock",
);
/** Calls that run what another call has decoded. Looked for in a program's own code. */
const RUN_DECODED =
  /\b(?:eval|exec|Function|execSync|spawn|spawnSync|system|popen)\s?\(\s*(?:(?:window|global|globalThis|self)\.)?(?:compile\s*\(\s*)?(?:atob|base64_decode|gzinflate|str_rot13|gzuncompress|hex2bin|bytes\.fromhex|String\.fromCharCode|(?:__import__\s*\(\s*['"](?:base64|zlib|codecs|marshal|binascii)['"]\s*\)\s*\.|(?:base64|zlib|codecs|marshal|binascii|bz2|lzma)\.)(?:\w*decode\w*|decompress|loads|unhexlify)|(?:new\s+)?Buffer(?:\.from)?\s*\([^\n]{0,4000}?['"](?:base64|hex)['"])|\bbase64\s+(?:-d|-D|--decode)\b[^\n|]{0,100}\|\s*(?:ba|z|da)?sh\b/;
const SHELL_AWAY =
  /\bbash\s+-i\s*>&?\s*\/dev\/tcp|\bexec\s+\d+<>\s*\/dev\/tcp|\b(?:nc|ncat|netcat)\s[^\n]{0,60}-e\s*\/bin\/(?:ba)?sh|dup2\s*\(\s*\w+\.fileno\(\)[^]{0,300}(?:\/bin\/(?:ba)?sh|pty\.spawn)|\.pipe\(\s*sh\.stdin|\bsh\.stdout\.pipe\(\s*(?:client|socket)/;

const STARTED_LATER =
  "(?:\\.(?:bashrc|bash_profile|bash_login|zshrc|zshenv|zprofile|profile|kshrc|xinitrc|xprofile)\\b|\\.config/(?:autostart|systemd|fish|direnv|plasma-workspace|environment\\.d)|\\.vscode/extensions/|authorized_keys|LaunchAgents|LaunchDaemons|/etc/(?:cron|profile|rc\\.local|ld\\.so\\.preload|systemd|init\\.d|hosts|passwd|sudoers)|/var/spool/cron|Startup[/\\\\]+|site-packages/[\\w-]+\\.pth|\\.claude/settings|\\.cursor/mcp|\\.vscode-server)";
const PERSISTS = pattern(
  `>>?\\s*["']?(?:[^\\s;&|<>()]|\\$\\([^)\\n]{0,60}\\)){0,160}${STARTED_LATER}`,
  `(?:\\btee\\b(?:\\s+-a)?|\\bcp\\b|\\bmv\\b|\\bln\\b|writeFile|appendFile|createWriteStream|open\\s*\\(|write_text|fs::write|File\\.(?:write|open)|OpenOptions|copyfile|WriteFile)[^\\n]{0,160}${STARTED_LATER}`,
  "(?:\\.bashrc|\\.zshrc|\\.bash_profile|\\.zshenv|\\.zprofile|[\"'/]\\.profile|authorized_keys|LaunchAgents|\\.config/autostart|\\.config/systemd)['\"`)][^\\n]{0,200}(?:append|write|flag|'a'|\"a\"|\"a\\+|'a\\+)",
  "\\bcrontab\\s+(?:-(?!l\\b|h\\b)|\\S*/)|\\|\\s*crontab\\b|\\bsystemctl\\b[^\\n]{0,30}\\benable\\b|\\blaunchctl\\s+(?:load|bootstrap)|\\bschtasks\\b[^\\n]{0,40}/create|CurrentVersion\\\\+Run\\b|\\bgit\\s+config\\s+(?:[^\\n]{0,40}\\s)?--(?:global|system)\\b(?![^\\n]{0,80}--get)[^\\n]{0,40}(?:hookspath|alias|sshcommand|pager|editor|template|credential|fsmonitor|askpass|insteadof|include|filter)",
);
const HOOKS = pattern(
  "(?:>>?|\\btee\\b|\\bcp\\b|\\bmv\\b|\\bln\\b|\\binstall\\b|writeFile|appendFile|open\\s*\\(|write_text|fs::write|File\\.(?:write|open|create)|copyfile|WriteFile|symlink|chmod)[^\\n]{0,160}\\.git/hooks|\\.git/hooks/[\\w-]+['\"`)]?[^\\n]{0,100}(?:write|chmod|>)|['\"]\\.git['\"]\\s*,\\s*['\"]hooks['\"]",
  "\\bgit\\s+config\\s+(?:--local\\s+)?(?:core\\.(?:sshcommand|fsmonitor|pager|editor|askpass)|alias\\.\\w+|filter\\.[\\w.]+|credential\\.helper)",
);
const DESTROYS = pattern(
  "\\brm\\s+(?:-\\w{1,20}\\s{1,5}){0,4}-\\w{0,9}[rR]\\w{0,9}\\s{1,5}(?:-\\w{1,20}\\s{1,5}){0,4}(?:--no-preserve-root\\s+)?[\"']?(?:/(?:\\s|[\"']?$|\\*|home\\b|etc\\b|usr\\b|root\\b)|~(?:/?[\"']?(?:\\s|$|\\*))|\\$\\{?HOME\\}?/?[\"']?(?:\\s|$|\\*))",
  "\\bdd\\b[^\\n]{0,80}\\bof=/dev/(?:sd|nvme|hd|vd|disk|mem)|\\bmkfs\\.\\w+\\s+/dev|\\bshred\\b[^\\n]{0,60}(?:/dev|~|\\$HOME)",
  ":\\s*\\(\\s*\\)\\s*\\{\\s*:\\s*\\|\\s*:\\s*&\\s*\\}\\s*;?\\s*:|\\bos\\.fork\\s*\\(\\s*\\)[^]{0,40}while\\s+(?:True|1)|while\\s+(?:True|1)\\s*:\\s*(?:\\n\\s*)?os\\.fork\\s*\\(",
  "\\bfs\\.rm(?:Sync|dirSync)?\\s*\\(\\s*(?:os\\.homedir\\(\\)|['\"]/['\"]|process\\.env\\.HOME)|\\bshutil\\.rmtree\\s*\\(\\s*(?:os\\.path\\.expanduser\\s*\\(\\s*['\"]~/?['\"]\\s*\\)|Path\\.home\\(\\)|['\"]/['\"])",
);
const PRIVILEGE = pattern(
  "\\bchmod\\s+(?:[ugo]*\\+s|[246][0-7]{3})\\b|\\bnsenter\\b|\\bunshare\\s+-|\\bsetcap\\b|--privileged\\b|/proc/1/(?:root|ns|cwd)|\\bptrace\\s*\\(|\\bLD_PRELOAD\\s*=|\\bkill\\s+-(?:9|KILL)\\s+-1\\b|\\binsmod\\b|\\bmodprobe\\b|release_agent|core_pattern",
);
const DETACHED = pattern(
  "\\bnohup\\s|\\bsetsid\\s|\\bdisown\\b|\\bdetached\\s*:\\s*(?:true|!0)|\\bstart_new_session\\s*=\\s*True|\\bdaemonize\\b|\\bstart\\s+/b\\b|\\bscreen\\s+-dm|\\btmux\\s+new(?:-session)?\\s+-d|\\(\\s*(?:sleep|while)[^)\\n]{0,200}\\)\\s*&(?!&)",
);
const OBFUSCATED =
  /(?:\\x[0-9a-f]{2}){40}|(?:\\u00[0-9a-f]{2}){40}|(?<!\d\s?,\s?)(?:\d{2,3}\s?,\s?){120}|\bString\.fromCharCode\s*\((?:\s?(?:0x[0-9a-f]+|\d{2,3})\s?,){20}|(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{600}|(?:chr\s?\(\s?\d+\s?\)\s?[+.]\s?){12}/i;
/** So many names of this kind are made only by a program that hides others. */
const RENAMED = /(?:_0x[0-9a-f]{4,6}\b[^_]{0,200}){12}|[[\]()!+]{200}/i;
const SINK =
  /\b(?:eval|exec|execSync|Function|system|popen|spawn|compile|assert|loadstring|instance_eval|Command::new|invoke-expression|iex|create_function)\b\s*\(?|\|\s*(?:ba)?sh\b/;
/** Runs a text as code that is not written out here. */
const RUNS_TEXT =
  /(?<![.\w])eval\s*\(\s*[A-Za-z_$][\w$.]{0,60}(?:\.toString\(\))?\s*\)|\b(?:new\s+)?Function\s*\(\s*[A-Za-z_$][\w$.]{0,60}\s*\)|\bvm\.run(?:InNewContext|InThisContext|InContext)\s*\(\s*[A-Za-z_$]|\bexec\s*\(\s*compile\s*\(\s*[A-Za-z_]/;
/** Hosts of the makers of tools that builds fetch in this way. */
const VENDORS = anyOfHosts("tools");
/** Any other address beside something that is fetched and run. */
const STRANGE_ADDRESS = `https?://(?!(?:${VENDORS})[/:\\s"')])(?:[\\w-]{1,63}\\.){1,6}[\\w-]{1,63}`;
const STRANGER = pattern(
  `\\b${FETCHER}\\b[^\\n|)]{0,200}?${STRANGE_ADDRESS}[^\\n|]{0,200}\\|(?:[^\\n|]{0,100}\\|)?\\s*(?:${SHELL})(?=\\s*(?:$|[-;&|"'\x60)\\\\\\]}]|\\s))`,
  `(?:(?:${SHELL})\\s+(?:-\\w{1,20}\\s{1,5}){0,4}|\\beval\\s+)["']?(?:<\\(|\\$\\(|\`)\\s*${FETCHER}\\b[^\\n)]{0,200}?${STRANGE_ADDRESS}`,
  `\\b(?:iex|invoke-expression)\\b[^\\n]{0,200}?${STRANGE_ADDRESS}`,
  `\\b(?:iwr|irm|invoke-(?:webrequest|restmethod)|downloadstring)\\b[^\\n|]{0,100}?${STRANGE_ADDRESS}[^\\n|]{0,100}\\|\\s*(?:iex|invoke-expression)\\b`,
);
/** A name that is put together from pieces, so that no search finds it. */
const PIECES =
  /(?:\w\[|\brequire\s*\(|\bimport\s*\(|\b__import__\s*\(|\bimport_module\s*\(|\bgetattr\s*\(\s*\w{1,40}\s*,)\s*(?:['"][\w.:-]{1,20}['"]\s*\+\s*){1,8}['"][\w.:-]{1,20}['"]\s*[\])]/;
const SLEEPS =
  /\bsleep\s*\(\s*(?:[2-9]\d|\d{3,})\s*\)|\bsleep\s+(?:[2-9]\d|\d{3,}|\d+[mhd])\b|\bAtomics\.wait\s*\([^\n]{0,200},\s*\d{5,}\s*\)|\bsetTimeout\s*\([^\n]{0,300},\s*(?:[3-9]\d{4}|\d{6,}|[1-9]e[5-9])\s*\)|\bfrom_secs\s*\(\s*(?:[2-9]\d|\d{3,})\s*\)/;
const FEATURES = /\bCARGO_(?:FEATURE|CFG)_/;
/** Code so far right that even a wide screen does not show it. */
const ASIDE = /\S[ \t]{150,}[^\s/*#]{0,40}(?:eval|exec|require|import|global|Function|subprocess|system)\b/;
const NETWORK = pattern(
  "\\bhttps?\\.(?:get|request)\\s*\\(|\\bfetch\\s*\\(\\s*['\"`h]|\\baxios\\b|require\\s*\\(\\s*['\"](?:node:)?(?:https?|net|dgram|dns|tls|request|got|node-fetch|undici|axios)['\"]|from\\s+['\"](?:node:)?(?:https?|net|dgram|dns|tls|got|node-fetch|undici|axios)['\"]|XMLHttpRequest|new\\s+WebSocket|sendBeacon",
  "\\burllib|\\brequests\\.(?:get|post|put|request|Session)|\\bhttp\\.client|\\bsocket\\.(?:socket|create_connection|gethostbyname|connect)|\\bhttpx\\.|\\baiohttp\\.|\\bsmtplib\\b|\\bftplib\\b|\\bparamiko\\b",
  "\\b(?:curl|wget|nc|ncat|netcat|socat|telnet|ftp|scp|sftp|rsync|nslookup|dig|invoke-webrequest|iwr|irm)\\s+[-\\w\"'$@./~]",
  "\\bTcpStream::connect|\\bUdpSocket::bind|\\breqwest::|\\bureq::|\\bnet\\.Dial|\\bhttp\\.(?:Get|Post)\\b|\\bNet::HTTP|\\bopen-uri|\\bTCPSocket|\\bfsockopen|\\bcurl_exec|\\bfile_get_contents\\s*\\(\\s*['\"]https?:|\\bjava\\.net\\.|\\bURL\\(\\s*[\"']https?:|\\bfile\\s*\\(\\s*DOWNLOAD\\b",
);
const RUNS = pattern(
  "\\bchild_process\\b|\\bexecSync\\b|\\bspawn(?:Sync)?\\s*\\(|\\bsubprocess\\.|\\bos\\.(?:system|popen|exec\\w+|spawn\\w+)\\s*\\(|\\bpty\\.spawn|\\beval\\s*\\(|\\bexec\\s*\\(|\\bCommand::new\\s*\\(|\\bexec\\.Command\\b|\\bRuntime\\.getRuntime\\(\\)\\.exec|\\bProcessBuilder\\b|\\bshell_exec\\b|\\bpassthru\\b|\\bproc_open\\b|\\bsystem\\s*\\(|\\bnew\\s+Function\\s*\\(",
);
const WRITES = pattern(
  "writeFile|appendFile|createWriteStream|open\\s*\\([^\\n]{0,100}['\"][wa]b?\\+?['\"]|write_text|write_bytes|fs::write|File::create|file_put_contents|ioutil\\.WriteFile|os\\.WriteFile|File\\.write|(?:^|\\s)>>?\\s*[\"']?[$~/]",
);
/** Compares a date that is written out with the clock. */
const DATE = pattern(
  "(?:new\\s+Date\\s*\\(\\s*\\)|Date\\.now\\s*\\(\\s*\\)|\\bnow\\b|\\btoday\\b)[^\\n]{0,40}[<>]=?\\s*(?:new\\s+Date\\s*\\(\\s*['\"\\d]|Date\\.(?:parse|UTC)\\s*\\(|['\"]?(?:1[6-9]|2\\d)\\d{8}(?:\\d{3})?\\b|(?:datetime\\.)?(?:datetime|date)\\s*\\(\\s*20\\d\\d)",
  "new\\s+Date\\s*\\(\\s*['\"]20\\d\\d-[^)\\n]{0,40}\\)[^\\n]{0,30}[<>]",
  "(?:getFullYear|getMonth|getDate|getDay|getHours|getUTC(?:FullYear|Month|Date|Day|Hours))\\s*\\(\\s*\\)\\s*(?:[<>]=?|===?|!==?)\\s*\\d",
  "(?:datetime|date)\\.(?:now|today|utcnow)\\s*\\([^)\\n]{0,30}\\)[^\\n<>-]{0,30}[<>]=?\\s*(?:datetime|date|['\"]|\\d{2})|(?:\\d{4}\\s*,[^)\\n]{0,20}\\)|\\d{9,}|['\"]20\\d\\d[^'\"\\n]{0,20}['\"]\\)?)\\s*[<>]=?\\s*(?:datetime\\.)?(?:datetime|date)\\.(?:now|today|utcnow)\\s*\\(|\\btime\\.time\\s*\\(\\s*\\)\\s*[<>]=?\\s*[\\d_]{9,}|\\b(?:now|today)(?:\\(\\))?\\.(?:year|month|day|weekday\\(\\)|hour)\\s*(?:[<>]=?|==|!=)\\s*\\d",
  "\\bdate\\s+(?:-u\\s+)?['\"]?\\+%[sYmdjuwH%-]+['\"]?\\s*\\)?[\"']?\\s*\\]?\\s*(?:-(?:gt|ge|lt|le|eq|ne)|[<>=]=?)\\s*[\"']?\\d|\\[\\s*[\"']?\\$\\(\\s*date\\b",
  "\\bUNIX_EPOCH\\b[^]{0,200}?[<>]=?\\s*[\\d_]{9,}|\\bas_secs\\s*\\(\\s*\\)\\s*[<>]=?\\s*[\\d_]{6,}|\\btime\\.Now\\(\\)[^\\n]{0,40}(?:After|Before|Unix\\(\\)\\s*[<>]|Year\\(\\)|Month\\(\\)|Weekday\\(\\))|Time\\.now[^\\n]{0,20}[<>]|\\btime\\s*\\(\\s*\\)\\s*[<>]=?\\s*(?:\\d{9,}|strtotime)",
);
const CI = pattern(
  "\\bprocess\\.env(?:\\.|\\[['\"])(?:CI|GITHUB_\\w+|GITLAB_\\w+|JENKINS_\\w+|TRAVIS\\w*|CIRCLECI|BUILDKITE|CODEBUILD\\w*|TF_BUILD)\\b|(?:environ(?:\\.get)?|getenv|env::var(?:_os)?|Getenv|ENV(?:\\.fetch)?|LookupEnv)\\s*[(\\[]\\s*['\"](?:CI|GITHUB_\\w+|GITLAB_\\w+|JENKINS_\\w+|TRAVIS\\w*|CIRCLECI|BUILDKITE|CODEBUILD\\w*|TF_BUILD)['\"]|\\$\\{?(?:CI|GITHUB_ACTIONS|GITHUB_TOKEN|GITLAB_CI|JENKINS_URL|TRAVIS|CIRCLECI|BUILDKITE)\\b",
);
const PERSON = pattern(
  "\\.(?:userInfo|hostname|networkInterfaces)\\s*\\(\\s*\\)|\\bgetpass\\.getuser\\s*\\(|\\bsocket\\.gethostname\\s*\\(|\\bplatform\\.node\\s*\\(|\\bos\\.getlogin\\s*\\(|\\bwhoami\\b|\\$\\(\\s*hostname|`hostname`|\\bos\\.Hostname\\s*\\(|\\bprocess\\.env\\.(?:USER|USERNAME|LOGNAME|HOSTNAME)\\b|(?:environ(?:\\.get)?|getenv|env::var)\\s*[(\\[]\\s*['\"](?:USER|USERNAME|LOGNAME|HOSTNAME)['\"]|\\bgethostname\\s*\\(",
);

const SIGNS = {
  FETCH_AND_RUN,
  DECODED,
  RUN_DECODED,
  SHELL_AWAY,
  REVERSE_SHELL,
  EXFIL_HOST,
  RAW_ADDRESS,
  SECRETS,
  PEOPLES,
  PRIVATE_KEY,
  TOKEN_VARIABLE,
  ENVIRONMENT,
  METADATA,
  PERSISTS,
  HOOKS,
  DESTROYS,
  PRIVILEGE,
  DETACHED,
  OBFUSCATED,
  RENAMED,
  SINK,
  ASIDE,
  TAKES,
  RUNS_TEXT,
  STRANGER,
  PIECES,
  SLEEPS,
  FEATURES,
  NETWORK,
  RUNS,
  WRITES,
  DATE,
  CI,
  PERSON,
} as const;
type Sign = keyof typeof SIGNS;

const withAny =
  (...words: readonly string[]) =>
  (text: string): boolean =>
    words.some((word) => text.includes(word));

/** Words without which the sign cannot be there: a search for them is much faster than one for the sign. */
const GATES: Partial<Record<Sign, (text: string) => boolean>> = {
  SHELL_AWAY: withAny("/dev/tcp", "/bin/", "sh.std"),
  ASIDE: withAny(" ".repeat(150), "\t".repeat(150)),
  RAW_ADDRESS: withAny("http://", "https://"),
};

const NAMES = withAny(
  "process.env",
  "environ",
  "getenv",
  ".ssh",
  ".aws",
  "id_rsa",
  "/etc/passwd",
  "env::vars",
);

/** The signs in a text, each searched for when it is first needed. */
class Signs {
  readonly #text: string;
  readonly #known = new Map<Sign, RegExpExecArray | null>();

  constructor(text: string) {
    this.#text = text;
  }

  #at(sign: Sign): RegExpExecArray | null {
    let match = this.#known.get(sign);
    if (match !== undefined) return match;
    match = GATES[sign]?.(this.#text) === false ? null : SIGNS[sign].exec(this.#text);
    this.#known.set(sign, match);
    return match;
  }

  has(...signs: readonly Sign[]): boolean {
    return signs.some((sign) => this.#at(sign) !== null);
  }

  /** Whether keys or the environment may be named at all. */
  names(): boolean {
    return NAMES(this.#text);
  }

  /** The position of a sign, and its words on one line. */
  quoted(sign: Sign): { readonly index: number; readonly words: string } {
    const match = this.#at(sign);
    const words = (match?.[0] ?? "").trim().replace(/\s+/g, " ").slice(0, 120);
    return { index: match?.index ?? 0, words };
  }
}

interface Danger {
  readonly rule: LookRule;
  readonly text: string;
  readonly line: number;
}

/** Most characters of one script that are looked at. */
const MAX_TEXT = 2 ** 18;

/**
 * When a script runs. `itself`: when somebody installs, opens or enters; `asked`: when somebody builds or tests, where
 * fetching a tool is usual; `apart`: on build machines, or when somebody deploys, releases, or asks for a container, a
 * service or a hook by that name, where keys and engines are usual; `cells`: code of a notebook; `tried`: files that a
 * command for tests leads to, which is run and observed; `tested`: the code of tests; `shell`: a script that somebody
 * starts by its name; `loaded`: a program's own code, where much is usual.
 */
export type Runs = "itself" | "asked" | "apart" | "cells" | "tried" | "tested" | "shell" | "loaded";

/** Whether nobody needs this command or target to install, build or test. */
export const isApart = (name: string): boolean =>
  /^(?:un)?(?:deploy\w*|releases?|publish\w*|upload|push|sync|rsync|ssh|shell|docker\w*|podman|compose|container|k8s|kube\w*|helm|terraform|ci|(?:git)?hooks?|services?|systemd|completions?|login|(?:install|setup|add|enable|start)[-_](?:\w+[-_])?(?:git|hooks?|services?|systemd|units?|user|completions?|launchd|cron))(?:$|[-_:.])/i.test(
    name,
  );

type Row = readonly [rule: LookRule, sign: Sign, words: string, holds?: (signs: Signs) => boolean];

const sends = (signs: Signs): boolean => signs.has("NETWORK", "EXFIL_HOST", "RAW_ADDRESS");

const ALWAYS: readonly Row[] = [
  ["script.decoded", "DECODED", "hidden code is decoded and run"],
  ["script.reverse-shell", "REVERSE_SHELL", "a shell is opened for another machine"],
  ["script.aside", "ASIDE", "code is pushed far to the right, out of view"],
];

const collects = (signs: Signs): boolean => signs.names() && signs.has("EXFIL_HOST", "RAW_ADDRESS");

const LOADED: readonly Row[] = [
  ["code.decoded", "RUN_DECODED", "hidden code is decoded and run"],
  ["code.reverse-shell", "SHELL_AWAY", "a shell is opened for another machine"],
  ["script.aside", "ASIDE", "code is pushed far to the right, out of view"],
  ["code.steals", "PEOPLES", "keys are read and something is sent", collects],
  ["code.steals", "ENVIRONMENT", "the environment is read and sent", collects],
  ["code.steals", "TAKES", "keys or the environment are read and sent"],
];

const IN_SHELL_TEXT: readonly Row[] = [
  ...LOADED,
  ["script.decoded", "DECODED", "hidden code is decoded and run"],
];

const TESTED: readonly Row[] = [
  ...LOADED,
  ["code.steals", "PRIVATE_KEY", "a private key is read and something is sent", sends],
];

const NAMED_SIGNS: readonly (readonly [sign: Sign, words: string])[] = [
  ["SECRETS", "a place that holds keys is named"],
  ["METADATA", "the interface of a cloud or a container engine is named"],
  ["PERSISTS", "something that the machine starts later is written"],
  ["HOOKS", "git hooks or settings are written"],
  ["DESTROYS", "something that is not its own is destroyed"],
  ["PRIVILEGE", "more privileges are taken"],
];

const APART: readonly Row[] = [
  ...LOADED,
  ["script.steals", "TAKES", "keys or the environment are read and sent"],
  ["script.fetches-tool", "FETCH_AND_RUN", "a download is run"],
  ...NAMED_SIGNS.map(([sign, words]): Row => ["script.apart", sign, words]),
];

/** Cells of a notebook: people who open it run them one after the other. */
const CELLS: readonly Row[] = [
  ...APART,
  ["script.fetches-strange", "STRANGER", "a download from an unknown host is run"],
  ["code.steals", "PEOPLES", "keys are read and something is sent", sends],
];

const TRIED: readonly Row[] = [
  ...TESTED,
  ["script.steals", "TAKES", "keys or the environment are read and sent"],
  ["script.fetches-tool", "FETCH_AND_RUN", "a download is run"],
  ...NAMED_SIGNS.map(([sign, words]): Row => ["script.tried", sign, words]),
];

const ASKED: readonly Row[] = [
  ...ALWAYS,
  ["script.fetches-tool", "FETCH_AND_RUN", "a download is run"],
  ["script.fetches-strange", "STRANGER", "a download from an unknown host is run"],
  ["script.secrets", "SECRETS", "a place that holds keys is named"],
  ["script.steals", "ENVIRONMENT", "the environment is read and sent", sends],
  ["script.steals", "TAKES", "keys or the environment are read and sent"],
  ["script.metadata", "METADATA", "the interface of a cloud or a container engine is named"],
  ["script.persists", "PERSISTS", "something that the machine starts later is written"],
  ["script.hooks", "HOOKS", "git hooks or settings are written"],
  ["script.destroys", "DESTROYS", "something that is not its own is destroyed"],
  ["script.privilege", "PRIVILEGE", "more privileges are taken"],
  ["script.exfil-host", "EXFIL_HOST", "a host that only collects data is named"],
];

const ITSELF: readonly Row[] = [
  ...ASKED.filter(([rule]) => !rule.startsWith("script.fetches-")),
  ["script.fetch-and-run", "FETCH_AND_RUN", "a download is run"],
  ["script.runs-text", "RUNS_TEXT", "a text is run as code", sends],
  ["script.raw-address", "RAW_ADDRESS", "an IP address is contacted"],
  // Build scripts of Cargo read all variables for the chosen features.
  [
    "script.environment",
    "ENVIRONMENT",
    "the whole environment is read",
    (signs) => !sends(signs) && !signs.has("FEATURES"),
  ],
  ["script.tokens", "TOKEN_VARIABLE", "a token is read from the environment", sends],
  ["script.obfuscated", "OBFUSCATED", "its text is obfuscated", (signs) => signs.has("SINK")],
  ["script.obfuscated", "RENAMED", "its text is obfuscated"],
  ["script.obfuscated", "PIECES", "a name is put together from pieces"],
  ["script.detached", "DETACHED", "a process outlives it"],
  ["script.waits", "DATE", "it waits for a date", (signs) => signs.has("NETWORK", "RUNS", "WRITES")],
  [
    "script.waits",
    "CI",
    "it waits until it is on a build machine",
    (signs) => signs.has("NETWORK") && signs.has("RUNS", "WRITES", "PERSON"),
  ],
  ["script.waits", "SLEEPS", "it sleeps for a long time"],
  ["script.who", "PERSON", "it reads its user and machine, and sends something", sends],
  ["script.network", "NETWORK", "the network is reached"],
];

const ROWS: Readonly<Record<Runs, readonly Row[]>> = {
  itself: ITSELF,
  asked: ASKED,
  apart: APART,
  cells: CELLS,
  tried: TRIED,
  tested: TESTED,
  shell: IN_SHELL_TEXT,
  loaded: LOADED,
};

export function dangersIn(text: string, runs: Runs): readonly Danger[] {
  const searched = text.slice(0, MAX_TEXT);
  const signs = new Signs(searched);
  return ROWS[runs].flatMap(([rule, sign, words, holds]) => {
    if ((holds !== undefined && !holds(signs)) || !signs.has(sign)) return [];
    const at = signs.quoted(sign);
    return [{ rule, text: `${words}: ${at.words}`, line: lineAt(searched, at.index) }];
  });
}
