use strict;
use warnings;
use Watchword;

my $broker = Watchword->new(answer => sub {
    my ($challenge) = @_;
    return 'cancel' if $challenge->{previousFailureCount};
    open my $file, '<:encoding(UTF-8)', $ENV{LOGIN_FILE} or die "LOGIN_FILE: $!";
    chomp(my ($user, $password) = <$file>);
    return { user => $user, password => $password };
});
print $broker->fetch($ARGV[0])->{content};
