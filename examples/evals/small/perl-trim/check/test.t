use strict;
use warnings;
use Test::More;
use lib '.';
use Text;

is(Text::trim("  a b  "), "a b");
is(Text::trim("\t a\n"), "a");
is(Text::trim(""), "");
is(Text::trim(" \n "), "");
is(Text::trim("a\n\nb"), "a\n\nb");

done_testing();
