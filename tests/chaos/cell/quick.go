package cell

func quick() []string { return nil }
