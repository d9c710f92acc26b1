module watchword.invalid/watchword/contrib/clients/go

go 1.19
