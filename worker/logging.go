package worker

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/holdfast-run/holdfast/internal/secret"
)

// maskHandler masks secrets in everything that is logged. The mask is asked for each record: it changes
// when the configuration does.
type maskHandler struct {
	next slog.Handler
	mask func() *secret.Mask
}

func (h maskHandler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h maskHandler) Handle(ctx context.Context, r slog.Record) error {
	m := h.mask()
	out := slog.NewRecord(r.Time, r.Level, m.String(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(maskAttr(m, a))
		return true
	})
	return h.next.Handle(ctx, out)
}

func (h maskHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	m := h.mask()
	masked := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		masked[i] = maskAttr(m, a)
	}
	return maskHandler{h.next.WithAttrs(masked), h.mask}
}

func (h maskHandler) WithGroup(name string) slog.Handler {
	return maskHandler{h.next.WithGroup(name), h.mask}
}

// maskAttr turns whatever is not a number, a time or the like into text, because only text can be
// searched for secrets.
func maskAttr(m *secret.Mask, a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		attrs := v.Group()
		masked := make([]slog.Attr, len(attrs))
		for i, b := range attrs {
			masked[i] = maskAttr(m, b)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(masked...)}
	case slog.KindString:
		return slog.String(a.Key, m.String(v.String()))
	case slog.KindAny:
		return slog.String(a.Key, m.String(fmt.Sprint(v.Any())))
	}
	return slog.Attr{Key: a.Key, Value: v}
}
