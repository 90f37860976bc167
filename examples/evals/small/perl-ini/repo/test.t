use strict;
use warnings;
use Test::More;
use lib '.';
use Ini;

is_deeply(Ini::parse("a=1\n[b]\nc=2\n"), { "" => { a => 1 }, b => { c => 2 } });
is_deeply(Ini::parse("# no\n; no\n\n  \nurl = x?a=b\n"), { "" => { url => "x?a=b" } });
is_deeply(Ini::parse("empty=\n"), { "" => { empty => "" } });

done_testing();
