package watchword

// Version is the version of this module, which Dial sends to the broker.
const Version = "0.4.0"
