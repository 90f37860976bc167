import { describe } from "node:test";
import { tells } from "./told.ts";

describe("Java, .NET, Swift and Dart", () => {
  tells({
    "mvn test -Dtest=UserTest": "allow; code check",
    "mvn -q -o test": "allow; code check",
    "mvn test -Dexec.executable=sh": "ask; option.unknown -Dexec.executable=sh; code check",
    "mvn -f /tmp/evil/pom.xml test": "ask; option.unknown -f; code project",
    "mvn deploy": "ask; network; code project",
    "gradle test --tests UserTest": "allow; code check",
    "gradle :api:test": "allow; code check",
    "gradle build": "ask; code project",
    "gradle test -I x.gradle": "ask; option.loads-code x.gradle; code check",
    "sbt test": "allow; code check",
    'sbt "test;!id"': "ask; code project",
    "java -version": "allow; code settings",
    "java -jar x.jar": "ask; code project",
    "dotnet test --no-build": "allow; code check",
    "dotnet test --logger x": "ask; code check; option.loads-code x",
    "dotnet test @x.rsp": "ask; read @x.rsp; code check; option.loads-code @x.rsp",
    "dotnet format --verify-no-changes": "allow; code check",
    "dotnet format": "ask; code check; write .",
    "dotnet --info": "allow; code settings",
    "swift test --filter x": "allow; code check",
    "swift test --package-path /tmp/evil": "ask; option.loads-code /tmp/evil; code check",
    "dart analyze": "allow; code check",
    "dart format src": "ask; read src; code check; write src",
    "dart format --output=none .": "allow; read .; code check",
    "java X": "ask; code project; command.unfollowed java",
  });
});

describe("Ruby, PHP and Perl", () => {
  tells({
    "rspec spec/a_spec.rb:42": "allow; read spec/a_spec.rb:42; code check",
    "rspec -f d": "allow; code check",
    "rspec -f ./x.rb": "ask; code check; option.loads-code ./x.rb",
    "rspec -r ./x": "ask; option.loads-code ./x; code check",
    "rubocop -A": "ask; read .; code check; write .",
    "rubocop --require ./x": "ask; option.loads-code ./x; read .; code check",
    "bundle exec rspec": "allow; code check",
    "bundle exec x": "ask; command.unknown x; code project",
    bundle: "ask; install",
    "rake test": "allow; code check",
    "rake build": "ask; code project",
    "gem list": "allow; code settings",
    "gem install x": "ask; install",
    "phpunit --filter x": "allow; code check",
    "phpunit --bootstrap x.php": "ask; option.loads-code x.php; code check",
    "phpstan analyse src": "allow; read src; code check",
    "composer test": "allow; code check",
    "composer install": "ask; install",
    "prove -l t": "allow; read t; code check",
    "prove -v": "allow; code check",
    "prove --exec ./x t": "ask; option.loads-code ./x; read t; code check",
    "bats test": "allow; read test; code check",
    "rspec --pattern /tmp/evil": "ask; read /tmp/evil; code check",
  });
});

describe("other languages", () => {
  tells({
    "mix test test/a_test.exs:12": "allow; read test/a_test.exs:12; code check",
    "mix format --check-formatted": "allow; code check",
    "mix format": "ask; code check; write .",
    "mix deps.get": "ask; install",
    "zig test src/main.zig": "allow; read src/main.zig; code check",
    "zig test src/main.zig --test-cmd id": "ask; option.loads-code id; read src/main.zig; code check",
    "zig build test": "allow; code check",
    "zig build": "ask; code project",
    "stack test": "allow; code check",
    "stack test --exec id": "ask; option.loads-code id; code check",
  });
});

describe("text linters", () => {
  tells({
    "shellcheck -x install.sh": "allow; read install.sh",
    "shellcheck --rcfile=/tmp/x x.sh": "ask; option.loads-code /tmp/x; read x.sh",
    "hadolint -c /tmp/x Dockerfile": "ask; option.loads-code /tmp/x; read Dockerfile",
    "yamllint -d relaxed .": "allow; read .",
    actionlint: "allow; code check",
    "shfmt -w a.sh": "ask; write a.sh",
    "terraform fmt -check": "allow; code settings",
    "terraform fmt": "ask; code settings; write .",
    "terraform apply": "ask; network; code project",
    "terraform validate": "ask; code project",
    "buf lint": "allow; code check",
  });
});
