import assert from "node:assert/strict";
import test from "node:test";
import { type ForbiddenPlaces, refusedPlace } from "../../src/boxes/workspace/box-workspace.ts";

const PLACES: ForbiddenPlaces = {
  homes: ["/home/me", "/home/you", "/root", "/srv/people/ann"],
  stateDir: "/home/me/.local/state/harness",
  settings: ["/home/me/.config/harness"],
  engineRoots: ["/var/lib/docker", "/data/engine"],
};

const REFUSED: Readonly<Record<string, string>> = {
  "/": "it is the root of the file system",
  "/home/me": "it is a home directory",
  "/home/you": "it is a home directory",
  "/root": "it is a home directory",
  "/home": "it is shared by every project in it",
  "/srv/people": "it contains a home directory",
  "/srv": "it contains a home directory",
  "/home/me/.local/state/harness": "it belongs to the harness's own state",
  "/home/me/.local/state/harness/audit": "it belongs to the harness's own state",
  "/home/me/.local/state": "it contains the harness's own state",
  "/home/me/.local": "it contains the harness's own state",
  "/home/me/.config/harness": "it belongs to the harness's own settings",
  "/home/me/.config": "it contains the harness's own settings",
  "/data/engine": "it belongs to the container engine's data",
  "/data/engine/overlay2/x": "it belongs to the container engine's data",
  "/data": "it contains the container engine's data",
  "/var/lib/docker/volumes/x": "it belongs to the container engine's data",
  "/tmp": "it is shared by every project in it",
  "/var/tmp": "it is shared by every project in it",
  "/opt": "it is shared by every project in it",
  "/var/www": "it is shared by every project in it",
  "/usr/src": "it is shared by every project in it",
};

const SYSTEM = [
  "/proc",
  "/proc/1",
  "/sys/fs",
  "/dev/shm/x",
  "/run/user/1000",
  "/boot",
  "/etc/nginx",
  "/usr/share/x",
];
const MORE = [
  "/bin",
  "/sbin",
  "/lib",
  "/lib64",
  "/lib/modules",
  "/var",
  "/var/lib",
  "/var/log/x",
  "/usr/local/lib",
];

const FINE = [
  "/home/me/code/app",
  "/home/you/x",
  "/root/project",
  "/srv/app",
  "/opt/app",
  "/tmp/x",
  "/var/tmp/x",
];
const ALSO = [
  "/var/www/site",
  "/usr/src/app",
  "/run/media/me/disk/app",
  "/library",
  "/libs/x",
  "/mnt",
  "/workspace",
];
const LOOK_ALIKES = [
  "/home/me2",
  "/homework",
  "/variable/x",
  "/data/engine2",
  "/tmpx",
  "/home/me/.local/state/harness2",
];

for (const [place, reason] of Object.entries(REFUSED))
  test(`a box on ${place} is refused`, () => assert.equal(refusedPlace(place, PLACES), reason));

test("a box on a folder of the system is refused", () => {
  const words = [...SYSTEM, ...MORE].map((place) => [place, refusedPlace(place, PLACES)]);
  assert.deepEqual(
    words,
    [...SYSTEM, ...MORE].map((place) => [place, "it belongs to the system"]),
  );
});

test("a box may be on usual project folders and on folders that only resemble refused ones", () => {
  for (const place of [...FINE, ...ALSO, ...LOOK_ALIKES])
    assert.equal(refusedPlace(place, PLACES), undefined, place);
});
