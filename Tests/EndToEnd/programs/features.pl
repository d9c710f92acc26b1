# Uses features of the Perl client beyond a single fetch, and prints the results as JSON. Arguments: a site of rig/clients.py.
use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use JSON::PP;
use Watchword;

my $site = $ARGV[0];
open my $file, '<', $ENV{LOGIN_FILE} or die;
chomp(my ($user, $password) = <$file>);
my @counts;
my $broker = Watchword->new(answer => sub {
    my ($challenge) = @_;
    push @counts, $challenge->{previousFailureCount};
    die "mine\n" if $challenge->{url} =~ m{/mistake$};
    return { user => $user, pasword => 'x' } if $challenge->{url} =~ m{/typo$};
    return { user => $user, password => $challenge->{previousFailureCount} ? $password : 'wrong' };
});
sub kind { my ($code) = @_; return eval { $code->(); 'nothing' } // (ref $@ ? $@->{kind} : $@) }
my %told = (mistake => kind(sub { $broker->fetch("$site/mistake") }), typo => kind(sub { $broker->fetch("$site/typo") }));
@counts = ();
$told{wrongThenRight} = $broker->fetch("$site/page")->{content};
$told{counts} = [map { $_ + 0 } @counts];
my $digest = Digest::SHA->new(256);
$broker->stream("$site/large", sub { $digest->add($_[0]) });
$told{streamed} = $digest->hexdigest;
my $sent = $broker->fetch("$site/echo", method => 'PUT', data => join '', map { chr($_) x 1000 } 0 .. 255);
$told{inline} = decode_json($sent->{content})->{sha256} eq sha256_hex(join '', map { chr($_) x 1000 } 0 .. 255) ? 'whole' : 'broken';
$told{short} = kind(sub { $broker->fetch("$site/short") });
$told{refused} = kind(sub { $broker->fetch('http://127.0.0.1:1/') });
$told{first} = kind(sub { $broker->stream("$site/slow", sub { die "$_[0]\n" }) });
chomp $told{first};
chomp $told{mistake};
$told{after} = $broker->fetch("$site/page")->{status};
print encode_json(\%told), "\n";
