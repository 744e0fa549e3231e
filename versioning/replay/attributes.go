package replay

import (
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
)

// values returns what updates of search attributes say, an attribute that is unset as nil. The SDK shows the set ones
// only: an update that unsets is tried on each attribute that the run has as unset afterwards.
//
// The order of the map decides nothing: each name stands for itself.
//
//workflowcheck:ignore
func values(updates []temporal.SearchAttributeUpdate, after *commonpb.SearchAttributes) map[string]any {
	out := map[string]any{}
	for _, u := range updates {
		for key, value := range temporal.NewSearchAttributes(u).GetUntypedValues() {
			out[key.GetName()] = value
		}
		for name, p := range after.GetIndexedFields() {
			if string(p.GetMetadata()[converter.MetadataEncoding]) == converter.MetadataEncodingNil && unsets(u, name) {
				out[name] = nil
			}
		}
	}
	return out
}

// unsets says whether an update takes away what the one before it has set, of whatever type.
func unsets(u temporal.SearchAttributeUpdate, name string) bool {
	set := []temporal.SearchAttributeUpdate{
		temporal.NewSearchAttributeKeyKeyword(name).ValueSet(""),
		temporal.NewSearchAttributeKeyInt64(name).ValueSet(0),
		temporal.NewSearchAttributeKeyTime(name).ValueSet(time.Time{}),
		temporal.NewSearchAttributeKeyString(name).ValueSet(""),
		temporal.NewSearchAttributeKeyBool(name).ValueSet(false),
		temporal.NewSearchAttributeKeyFloat64(name).ValueSet(0),
		temporal.NewSearchAttributeKeyKeywordList(name).ValueSet(nil),
	}
	all := temporal.NewSearchAttributes(set...).Size()
	return temporal.NewSearchAttributes(append(set, u)...).Size() < all
}
