import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** `node slow-line.ts HOST PORT MS`, as a ProxyCommand of ssh: delays data by half of MS in each direction. */
const [host = "", port = "", ms = ""] = process.argv.slice(2);
const half = Number(ms) / 2;
const far = connect(Number(port), host).setNoDelay(true);
const later = (then: () => void): void => void sleep(half).then(then, then);
process.stdin.on("data", (bytes) => later(() => far.write(bytes)));
process.stdin.on("end", () => later(() => far.end()));
far.on("data", (bytes) => later(() => process.stdout.write(bytes)));
far.on("end", () => later(() => process.exit(0)));
far.on("error", () => process.exit(255));
