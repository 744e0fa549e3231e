package tool

type schema struct{}

func compile(Spec) (*schema, error) { return &schema{}, nil }

func (*schema) validate(string) error { return nil }
