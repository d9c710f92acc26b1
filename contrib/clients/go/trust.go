package watchword

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// checkDirectory returns an error if other users could replace the socket: their process would receive passwords. It is called
// before connecting; a missing directory is reported by connect(2).
func checkDirectory(path string) error {
	directory := filepath.Dir(path)
	info, err := os.Stat(directory)
	if err != nil {
		return nil
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 0 && int(owner) != os.Geteuid() {
		return &NotTrustedError{path, fmt.Sprintf("the directory %s belongs to user %d", directory, owner)}
	}
	if info.Mode().Perm()&0o022 != 0 {
		return &NotTrustedError{path, fmt.Sprintf("the directory %s can be written by other users (mode %04o)", directory, info.Mode().Perm())}
	}
	return nil
}

// checkPeer returns an error unless the listening process runs as this user (SO_PEERCRED, unix(7)). It is called before sending.
func checkPeer(conn net.Conn, path string) error {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var peer *syscall.Ucred
	problem := raw.Control(func(descriptor uintptr) {
		peer, err = syscall.GetsockoptUcred(int(descriptor), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	switch {
	case problem != nil:
		return problem
	case err != nil:
		return err
	case int(peer.Uid) != os.Geteuid(): // guard: client-peer-go
		return &NotTrustedError{path, fmt.Sprintf("user %d listens there", peer.Uid)}
	}
	return nil
}
