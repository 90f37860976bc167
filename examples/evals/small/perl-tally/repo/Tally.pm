package Tally;
use strict;
use warnings;

# Names and how often each came, in the order in which they first came: ([name, count], ...)
sub tally {
    my %count;
    $count{$_}++ for @_;
    return map { [$_, $count{$_}] } sort keys %count;
}

1;
