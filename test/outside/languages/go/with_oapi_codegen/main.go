// A client that oapi-codegen generates from the gateway's document.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"languages/made"
)

func check(isSo bool, what ...any) {
	if !isSo {
		panic(fmt.Sprint(what...))
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func clientOf(key string) *made.ClientWithResponses {
	bearer := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+key)
		return nil
	}
	return must(made.NewClientWithResponses(os.Getenv("GATEWAY_URL"), made.WithRequestEditorFn(bearer)))
}

func main() {
	build, _ := debug.ReadBuildInfo()
	for _, it := range build.Deps {
		if it.Path == "github.com/oapi-codegen/runtime" {
			fmt.Println("oapi-codegen's runtime", it.Version)
		}
	}
	ctx := context.Background()
	client := clientOf(os.Getenv("GATEWAY_API_KEY"))

	// A wallet, and the problem for a wrong key
	wallet := must(client.GetWalletWithResponse(ctx, &made.GetWalletParams{}))
	check(wallet.JSON200 != nil, string(wallet.Body))
	check(must(strconv.ParseFloat(wallet.JSON200.AvailableBalance, 64)) > 0, string(wallet.Body))
	refused := must(clientOf("sk-wrong").GetWalletWithResponse(ctx, &made.GetWalletParams{}))
	check(refused.ApplicationproblemJSON401 != nil, string(refused.Body))
	check(strings.Contains(refused.ApplicationproblemJSON401.Detail, "malformed"), string(refused.Body))

	if os.Getenv("WORLD") == "the sandbox" {
		createAndPoll(ctx, client)
	}
	limit := 2
	tasks := must(client.ListTasksWithResponse(ctx, &made.ListTasksParams{Limit: &limit}))
	check(tasks.JSON200 != nil, string(tasks.Body))
}

func createAndPoll(ctx context.Context, client *made.ClientWithResponses) {
	create := client.CreateAlibabaTextToImagePreviewGenerationWithResponse
	params := &made.CreateAlibabaTextToImagePreviewGenerationParams{}
	n := 99
	faulty := must(create(ctx, params, made.TextToImagePreview{Prompt: "A lighthouse", N: &n}))
	problem := faulty.ApplicationproblemJSON400
	check(problem != nil && problem.Errors != nil, string(faulty.Body))
	check((*problem.Errors)[0].Pointer == "#/n", string(faulty.Body))
	n = 1
	created := must(create(ctx, params, made.TextToImagePreview{Prompt: "A lighthouse", N: &n}))
	check(created.JSON202 != nil, string(created.Body))
	for range 60 {
		found := must(client.GetAlibabaTextToImagePreviewGenerationWithResponse(ctx,
			created.JSON202.TaskInfo.Id, &made.GetAlibabaTextToImagePreviewGenerationParams{}))
		check(found.JSON200 != nil, string(found.Body))
		if found.JSON200.TaskInfo.Status == "completed" {
			check(len(*found.JSON200.Images) == 1, string(found.Body))
			return
		}
		time.Sleep(time.Second)
	}
	panic("the task did not complete")
}
