package world

import (
	"context"
	"time"

	"go.temporal.io/api/workflowservice/v1"
)

// perServer is how many worlds share a server one after the other. Its database grows, and it has been seen to refuse
// everything once a query was interrupted.
const perServer = 150

// share returns the server of worlds that do nothing to theirs: another one when it has had its share of them, or when
// it does not answer.
func (l *Lab) share(ctx context.Context) (*Server, error) {
	l.sharing.Lock()
	defer l.sharing.Unlock()
	if l.shares++; l.shares%perServer == 0 || !l.shared.answers(ctx) {
		next, err := l.NewServer(ctx)
		if err != nil {
			return nil, err
		}
		l.shared = next
	}
	l.sharers[l.shared]++
	return l.shared, nil
}

// unshare is called when a world is closed. The last one of a server that is shared no more stops it.
func (l *Lab) unshare(s *Server) error {
	l.sharing.Lock()
	defer l.sharing.Unlock()
	if l.sharers[s]--; l.sharers[s] == 0 && s != l.shared {
		return s.Stop()
	}
	return nil
}

func (s *Server) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := s.client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
	return err == nil
}
