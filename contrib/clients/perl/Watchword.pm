package Watchword;

# A client for the Watchword broker, using only modules that come with Perl.
#
#   my $broker = Watchword->new(answer => sub { my ($challenge) = @_; { user => 'bob', password => $password } });
#   print $broker->fetch('https://intranet.example/report')->{content};

use strict;
use warnings;
use File::Basename qw(dirname);
use IO::Socket::UNIX;
use JSON::PP ();
use MIME::Base64 qw(encode_base64);
use Socket qw(SOL_SOCKET SO_PEERCRED);

# `new` sends it to the broker.
our $VERSION = '0.4.0';

my $json = JSON::PP->new->utf8->canonical;
my %DECISIONS = map { $_ => 1 } qw(continue cancel default reject);

# Connects to the broker. `answer` gets the parameters of auth/challenge and returns { user, password }, another credential (with a
# `type`), one of the strings continue, cancel, default and reject, or undef, which means continue; `stored` makes an answer from a
# stored login in $challenge->{knownUsers}. Without `answer`, challenges are sent to an agent. `resolved` gets the parameters of
# auth/resolved before the fetch returns.
sub new {
    my ($class, %options) = @_;
    my $self = bless { path => $options{path} // socket_path(), answer => $options{answer}, resolved => $options{resolved}, last => 0, begun => {}, completed => {} }, $class;
    $self->{socket} = $self->_connect;
    my $capabilities = $self->{answer} ? { challenge => { delivery => 'request' } } : {};
    $self->call('initialize', { client => { name => $options{name} // 'perl', version => $VERSION }, protocolVersion => 1, capabilities => $capabilities });
    return $self;
}

# Returns an answer with a stored login that the challenge lists, without its password.
sub stored {
    my ($known) = @_;
    return { type => 'stored', id => $known->{id} };
}

# Returns $WATCHWORD_SOCKET, or the path below $XDG_RUNTIME_DIR or /run/user/UID.
sub socket_path {
    my $runtime = ($ENV{XDG_RUNTIME_DIR} // '') =~ m{^/} ? $ENV{XDG_RUNTIME_DIR} : "/run/user/$<";
    return $ENV{WATCHWORD_SOCKET} || "$runtime/watchword/broker.sock";
}

# Returns the response, whatever its status: the members of fetch/completed, and `content`, the whole body as bytes. `data` is the
# request body as bytes; other parameters are passed to fetch/start.
sub fetch {
    my ($self, $url, %params) = @_;
    my $content = '';
    my $result = $self->stream($url, sub { $content .= $_[0] }, %params);
    return { %$result, content => $content };
}

# Calls `take` with each part of the body as it arrives; returns the result of `fetch` without `content`. Dies if the body is
# incomplete.
sub stream {
    my ($self, $url, $take, %params) = @_;
    my $data = delete $params{data};
    $params{body} = { type => 'base64', value => encode_base64($data, '') } if defined $data;
    my $started = $self->call('fetch/start', { %params, url => $url });
    my $name = $started->{fetchId};
    my $went_well = eval {
        $self->_receive until $self->{begun}{$name} || $self->{completed}{$name};
        $self->_take_body($started->{attachToken}, $take) if delete $self->{begun}{$name};
        $self->_receive until $self->{completed}{$name};
        1;
    };
    if (!$went_well) {
        my $problem = $@;
        # Closing the connection of the body may have cancelled the fetch already.
        eval { $self->call('fetch/cancel', { fetchId => $name }) };
        delete $self->{completed}{$name};
        die $problem;
    }
    my $completed = delete $self->{completed}{$name};
    die Watchword::Error->new($completed->{error}) if $completed->{error};
    return $completed;
}

# Calls any method of the protocol. If `answer` dies, the request is cancelled and the connection stays usable.
sub call {
    my ($self, $method, $params) = @_;
    my $id = ++$self->{last};
    $self->_send({ id => $id, method => $method, params => $params // {} });
    my $message;
    my $went_well = eval {
        do { $message = $self->_receive } until !$message->{method} && _is_reply_to($message, $id);
        1;
    };
    if (!$went_well) {
        my $problem = $@;
        eval { $self->_send({ method => '$/cancelRequest', params => { id => $id } }) };
        die $problem;
    }
    die Watchword::Error->new($message->{error}) if $message->{error};
    return $message->{result};
}

# Compares the JSON forms: in Perl the string "1" and true equal the number 1.
sub _is_reply_to {
    my ($message, $id) = @_;
    return $json->encode([$message->{id}]) eq "[$id]";
}

sub close { CORE::close($_[0]{socket}) }

sub _connect {
    my ($self) = @_;
    $self->_check_directory;
    my $socket = IO::Socket::UNIX->new(Peer => $self->{path}) // die Watchword::Error->new({ code => 0, data => { kind => 'notRunning' }, message =>
        "no broker listens at $self->{path} ($!); start one with `systemctl --user start watchword.socket` or `watchwordd`" });
    # Checks before sending that the listening process runs as this user (SO_PEERCRED, unix(7)).
    my (undef, $uid) = unpack 'iII', getsockopt($socket, SOL_SOCKET, SO_PEERCRED) // '';
    # guard: client-peer-perl
    $self->_distrust(defined $uid ? "user $uid listens there" : 'the user who listens there is unknown') if !defined $uid || $uid != $>;
    return $socket;
}

# Dies if other users could replace the socket: their process would receive passwords. A missing directory is reported by connect.
sub _check_directory {
    my ($self) = @_;
    my $directory = dirname($self->{path});
    my (undef, undef, $mode, undef, $uid) = stat $directory or return;
    $self->_distrust("the directory $directory belongs to user $uid") if $uid != 0 && $uid != $>;
    $self->_distrust(sprintf 'the directory %s can be written by other users (mode %04o)', $directory, $mode & 07777) if $mode & 022;
}

sub _distrust {
    my ($self, $reason) = @_;
    die Watchword::Error->new({ code => 0, data => { kind => 'socketNotTrusted' }, message => "refusing to use the socket $self->{path}: $reason; "
        . 'the socket must be in a directory that only you can write to, such as $XDG_RUNTIME_DIR/watchword' });
}

# Reads the body from a connection of its own. Only fetch/completed tells whether the body is complete.
sub _take_body {
    my ($self, $token, $take) = @_;
    my $second = $self->_connect;
    my $params = { token => $token, side => 'response' };
    print $second $json->encode({ jsonrpc => '2.0', id => 1, method => 'fetch/attach', params => $params }) . "\n";
    $second->flush;
    my $buffer = '';
    while ($buffer !~ /\n/) {
        sysread($second, $buffer, 1 << 16, length $buffer) or die $self->_closed;
    }
    (my $line, $buffer) = split /\n/, $buffer, 2;
    my $reply = $json->decode($line);
    die Watchword::Error->new($reply->{error}) if $reply->{error};
    do { $take->($buffer) if length $buffer } while sysread $second, $buffer, 1 << 16;
}

sub _closed {
    my ($self) = @_;
    return Watchword::Error->new({ code => 0, data => { kind => 'closed' }, message =>
        "the broker at $self->{path} closed the connection; see its log, then connect again" });
}

# Receives and handles the next message, and returns it.
sub _receive {
    my ($self) = @_;
    my $line = readline $self->{socket};
    die $self->_closed if !defined $line;
    my $message = $json->decode($line);
    my ($method, $params) = @{$message}{qw(method params)};
    return $message if !$method;
    if ($method eq 'auth/challenge') { $self->_reply($message) }
    elsif ($method eq 'auth/resolved') { $self->_tell($params) }
    elsif ($method eq 'fetch/headers') { $self->{begun}{ $params->{fetchId} } = $params }
    elsif ($method eq 'fetch/completed') { $self->{completed}{ $params->{fetchId} } = $params }
    elsif (defined $message->{id}) { $self->_send({ id => $message->{id}, error => { code => -32601, message => 'method not supported by this client' } }) }
    return $message;
}

# Calls the resolved handler; its errors are warnings and do not affect the current call.
sub _tell {
    my ($self, $end) = @_;
    local $@;
    eval { $self->{resolved}->($end) if $self->{resolved}; 1 } or warn "the resolved handler failed: $@";
}

sub _reply {
    my ($self, $message) = @_;
    my $action = eval { $self->{answer} ? _action($self->{answer}->($message->{params})) : { action => 'default' } };
    my $problem = $@;
    $self->_send({ id => $message->{id}, result => $action // { action => 'cancel' } });
    die $problem if !$action;
}

sub _action {
    my ($answer) = @_;
    return { action => 'continue' } if !defined $answer;
    return { action => $answer } if !ref $answer && $DECISIONS{$answer};
    die "invalid answer; return a credential, or continue, cancel, default, reject\n" if ref $answer ne 'HASH';
    return $answer if exists $answer->{action};
    return { action => 'credential', credential => { type => 'password', %$answer } };
}

sub _send {
    my ($self, $message) = @_;
    local $SIG{PIPE} = 'IGNORE';
    print { $self->{socket} } $json->encode({ jsonrpc => '2.0', %$message }) . "\n";
    $self->{socket}->flush;
}

# An error reported by the broker, or found by this client (kinds notRunning, socketNotTrusted, closed). `kind` is stable; `retry` is
# never, later or differently.
package Watchword::Error;

use overload '""' => sub { "$_[0]{message} ($_[0]{kind})\n" }, fallback => 1;

sub new {
    my ($class, $error) = @_;
    my $data = $error->{data} // {};
    return bless { code => $error->{code}, message => $data->{detail} // $error->{message}, kind => $data->{kind} // '', retry => $data->{retry} // 'never' }, $class;
}

# Whether the same request may succeed later.
sub retriable { $_[0]{retry} eq 'later' }

1;
