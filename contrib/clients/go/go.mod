module watchword.invalid/client

go 1.19
