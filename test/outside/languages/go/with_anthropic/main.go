// Anthropic's client for Go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func check(isSo bool, what ...any) {
	if !isSo {
		panic(fmt.Sprint(what...))
	}
}

func textOf(message *anthropic.Message) string {
	text := ""
	for _, block := range message.Content {
		text += block.Text
	}
	return text
}

func main() {
	build, _ := debug.ReadBuildInfo()
	for _, it := range build.Deps {
		if it.Path == "github.com/anthropics/anthropic-sdk-go" {
			fmt.Println("anthropic-sdk-go", it.Version)
		}
	}
	ctx := context.Background()
	text := os.Getenv("ANSWER")
	url := os.Getenv("GATEWAY_URL")
	client := anthropic.NewClient(option.WithAPIKey(os.Getenv("GATEWAY_API_KEY")), option.WithBaseURL(url))
	params := anthropic.MessageNewParams{
		Model:     "claude-sonnet-5",
		MaxTokens: 600,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Where to?"))},
	}

	// Messages, whole and as a stream
	whole, err := client.Messages.New(ctx, params)
	check(err == nil, err)
	check(textOf(whole) == text, whole.RawJSON())
	stream := client.Messages.NewStreaming(ctx, params)
	var streamed anthropic.Message
	for stream.Next() {
		check(streamed.Accumulate(stream.Current()) == nil, "an event cannot be accumulated")
	}
	check(stream.Err() == nil, stream.Err())
	check(textOf(&streamed) == text, streamed.RawJSON())

	// A tool, until the answer is text
	weather := anthropic.ToolParam{
		Name: "weather",
		InputSchema: anthropic.ToolInputSchemaParam{
			Properties: map[string]any{"city": map[string]any{"type": "string"}},
			Required:   []string{"city"},
		},
	}
	params.Tools = []anthropic.ToolUnionParam{{OfTool: &weather}}
	params.Messages = []anthropic.MessageParam{
		anthropic.NewUserMessage(anthropic.NewTextBlock("Where to? [[sim:tool=weather]]")),
	}
	called, err := client.Messages.New(ctx, params)
	check(err == nil, err)
	check(called.StopReason == anthropic.StopReasonToolUse, called.RawJSON())
	id := called.Content[len(called.Content)-1].ID
	params.Messages = append(params.Messages, called.ToParam(),
		anthropic.NewUserMessage(anthropic.NewToolResultBlock(id, "sunny", false)))
	last, err := client.Messages.New(ctx, params)
	check(err == nil, err)
	check(textOf(last) == text, last.RawJSON())

	// Errors contain the detail of the problem
	stranger := anthropic.NewClient(option.WithAPIKey("sk-wrong"), option.WithBaseURL(url))
	_, err = stranger.Messages.New(ctx, params)
	var refused *anthropic.Error
	check(errors.As(err, &refused) && refused.StatusCode == 401, err)
	check(strings.Contains(refused.RawJSON(), "malformed"), refused.RawJSON())
}
