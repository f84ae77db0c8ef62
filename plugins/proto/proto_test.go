package proto_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/hashicorp/go-plugin" // registers its descriptors
	_ "google.golang.org/grpc/health/grpc_health_v1"
	googleproto "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	_ "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
	"github.com/coven-run/coven/plugins/proto"
)

// compiled compiles the embedded files with protoc, which reads them like a plugin author's tools.
func compiled(t *testing.T) *descriptorpb.FileDescriptorSet {
	t.Helper()
	if _, err := exec.LookPath("protoc"); err != nil {
		if os.Getenv("COVEN_REQUIRE_PROTOC") != "" {
			t.Fatal(err)
		}
		t.Skip("protoc is not here: apt-get install protobuf-compiler")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, proto.Files); err != nil {
		t.Fatal(err)
	}
	args := []string{"-I", dir, "-o", filepath.Join(dir, "set")}
	err := fs.WalkDir(proto.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".proto" {
			args = append(args, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("protoc", args...).CombinedOutput()
	if strings.Contains(string(out), "google/protobuf/empty.proto: File not found") && os.Getenv("COVEN_REQUIRE_PROTOC") == "" {
		t.Skip("protoc has none of its own files: apt-get install libprotobuf-dev")
	}
	if err != nil {
		t.Fatalf("protoc: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "set"))
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := googleproto.Unmarshal(text, set); err != nil {
		t.Fatal(err)
	}
	return set
}

// The contracts match the descriptors in the generated Go code, including all options.
func TestContracts(t *testing.T) {
	var seen []string
	for _, got := range compiled(t).GetFile() {
		if got.GetPackage() != "coven.plugin.v1" {
			continue
		}
		file, err := protoregistry.GlobalFiles.FindFileByPath(got.GetName())
		if err != nil {
			t.Errorf("%s: %v: run make proto", got.GetName(), err)
			continue
		}
		want := protodesc.ToFileDescriptorProto(file)
		if !googleproto.Equal(got, want) {
			t.Errorf("%s is not what the Go code was generated from: run make proto\n%v\n%v", got.GetName(), got, want)
		}
		for _, s := range got.GetService() {
			seen = append(seen, s.GetName())
		}
	}
	slices.Sort(seen)
	if want := []string{"Arbiter", "Forge", "Model", "Provider", "Reviewer", "Services"}; !slices.Equal(seen, want) {
		t.Errorf("the services are %q, want %q", seen, want)
	}
}

// goplugin.proto and health.proto match the services of hashicorp/go-plugin and grpc-go: the same services
// with the same streams, and messages with the same fields.
func TestForeignServices(t *testing.T) {
	services := 0
	for _, got := range compiled(t).GetFile() {
		if got.GetPackage() == "coven.plugin.v1" {
			continue
		}
		for _, s := range got.GetService() {
			services++
			name := got.GetPackage() + "." + s.GetName()
			d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			want := protodesc.ToServiceDescriptorProto(d.(protoreflect.ServiceDescriptor))
			for _, m := range s.GetMethod() {
				i := slices.IndexFunc(want.GetMethod(), func(w *descriptorpb.MethodDescriptorProto) bool { return googleproto.Equal(m, w) })
				if i < 0 {
					t.Errorf("%s has no method %v", name, m)
				}
			}
		}
		for _, m := range got.GetMessageType() {
			name := got.GetPackage() + "." + m.GetName()
			d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if want := protodesc.ToDescriptorProto(d.(protoreflect.MessageDescriptor)); !googleproto.Equal(m, want) {
				t.Errorf("%s: %v, want %v", name, m, want)
			}
		}
	}
	if services != 4 {
		t.Errorf("%d services, want GRPCController, GRPCBroker, GRPCStdio and Health", services)
	}
}
