package Roman;
use strict;
use warnings;

sub to_roman {
    my ($number) = @_;
    return "";
}

1;
