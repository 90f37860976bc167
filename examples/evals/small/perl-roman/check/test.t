use strict;
use warnings;
use Test::More;
use lib '.';
use Roman;

my %cases = (1 => "I", 4 => "IV", 9 => "IX", 14 => "XIV", 40 => "XL", 90 => "XC", 400 => "CD", 1994 => "MCMXCIV", 3999 => "MMMCMXCIX");
is(Roman::to_roman($_), $cases{$_}, $_) for sort keys %cases;
for my $wrong (0, -1, 4000, "x", 1.5) {
    ok(!eval { Roman::to_roman($wrong); 1 }, "dies of $wrong");
}

done_testing();
