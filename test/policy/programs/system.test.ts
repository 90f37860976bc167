import { describe } from "node:test";
import { tells } from "./told.ts";

describe("programs that report on the machine", () => {
  tells({
    "uname -a": "allow",
    "id -u": "allow",
    whoami: "allow",
    "timeout 5 whoami": "ask; read /etc/passwd",
    "which node": "allow",
    hostname: "allow",
    "hostname -I": "allow",
    "hostname other": "deny; system",
    'hostname "$X"': "ask; word.dynamic ?",
    "printenv PATH HOME": "allow",
    printenv: "ask; read /proc/self/environ",
    "printenv OPENAI_API_KEY": "ask; read /proc/self/environ",
    "printenv $X": "ask; word.dynamic ?",
    "top -bn1": "allow",
    top: "ask; process",
    "pgrep -f vitest": "allow",
    "pgrep -F /etc/shadow": "ask; read /etc/shadow",
    "stty size": "allow",
    "stty raw": "ask; process",
    lscpu: "allow",
  });
});

describe("ps", () => {
  tells({
    ps: "allow",
    "ps aux --sort=-%cpu": "allow",
    "ps -eo pid,ppid,cmd": "allow",
    "ps -C node": "allow",
    "ps -p 12 -o pid=": "allow",
    "ps auxe": "ask; read /proc/self/environ",
    "ps e": "ask; read /proc/self/environ",
    "ps -auxe": "ask; option.unknown -auxe",
    "ps -ex": "ask; option.unknown -ex",
    "ps -e -u x": "ask; read /proc/self/environ",
    "ps axo pid,environ": "ask; read /proc/self/environ",
    "ps --format=environ": "ask; read /proc/self/environ",
    "ps $X": "ask; word.dynamic ?",
    "ps -p $X": "ask; word.dynamic ?",
  });
});

describe("programs that act on processes", () => {
  tells({
    "kill -9 1": "ask; process",
    "kill -l": "allow",
    "pkill -f node": "ask; process",
    "killall node": "ask; process",
    "systemctl is-active x": "allow",
    "systemctl status x": "ask; process",
    "systemctl stop x": "ask; process",
    "systemctl reboot": "deny; system",
    "systemctl -H host stop x": "ask; network host; process",
    "service x stop": "ask; process",
    "journalctl -u x": "ask; read /var/log/journal",
    "journalctl --vacuum-size=1": "deny; system; read /var/log/journal",
    "crontab -l": "ask; read /var/spool/cron/crontabs",
    "crontab -r": "deny; write /var/spool/cron/crontabs",
    "echo 'rm -rf /' | at now": "deny; code input; write /var/spool/cron/atjobs",
    "logger -n host.example x": "ask; network host.example; write /var/log/syslog",
  });
});

describe("programs that act on the machine", () => {
  tells({
    "shutdown -h now": "deny; system",
    reboot: "deny; system",
    "shutdown --help": "allow",
    "mkfs.ext4 /dev/sdb1": "deny; system",
    "fdisk /dev/sda": "deny; system",
    "useradd x": "deny; privilege",
    "passwd root": "deny; privilege",
    mount: "allow",
    "mount /dev/sda1 /mnt": "deny; system",
    "mount $X": "ask; word.dynamic ?",
    "swapon --show": "allow",
    "swapon /dev/sda2": "deny; system",
    "sysctl kernel.x": "ask; read /proc/sys",
    "sysctl -w kernel.x=1": "deny; system; read /proc/sys",
    "sysctl kernel.x=1": "deny; system; read /proc/sys",
    dmesg: "ask; read /dev/kmsg",
    "dmesg -C": "deny; system; read /dev/kmsg",
    "ip -br addr": "ask; network",
    "ip link set eth0 down": "deny; system",
    "ip netns exec x id": "deny; system",
    "ip $X": "ask; word.dynamic ?",
    "ifconfig eth0": "allow",
    "ifconfig eth0 down": "deny; system",
    "route -n": "allow",
    "route add default gw 1.2.3.4": "deny; system",
    "update-alternatives --list x": "allow",
    "update-alternatives --set x y": "deny; system",
    "iptables -F": "deny; system",
    "modprobe x": "deny; system",
  });
});
