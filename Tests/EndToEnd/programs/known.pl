# Answers with a stored login, and prints the listed users, the outcome of the answer, and the body.
use strict;
use warnings;
use Watchword;

binmode STDOUT, ':utf8';
my ($url, $wanted) = split / /, $ARGV[0];
utf8::decode($wanted);
my $broker = Watchword->new(
    answer => sub {
        my @known = @{ $_[0]{knownUsers} // [] };
        print 'known ', join(',', map { $_->{domain} ? "$_->{domain}\\$_->{user}" : $_->{user} } @known), "\n";
        my ($found) = grep { $_->{user} eq $wanted } @known;
        return $found ? Watchword::stored($found) : 'cancel';
    },
    resolved => sub {
        print "resolved $_[0]{outcome} $_[0]{user}\n";
        die "it costs a report, and no fetch\n";
    });
print 'body ', $broker->fetch($url)->{content};
