// OpenAI's client for Go.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

var (
	url  = os.Getenv("GATEWAY_URL")
	key  = os.Getenv("GATEWAY_API_KEY")
	text = os.Getenv("ANSWER")
	ctx  = context.Background()
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

type tasks struct {
	Data []json.RawMessage `json:"data"`
}

func taskCount() int {
	request := must(http.NewRequest("GET", url+"/manage/v1/tasks?limit=100", nil))
	request.Header.Set("Authorization", "Bearer "+key)
	response := must(http.DefaultClient.Do(request))
	defer response.Body.Close()
	var found tasks
	check(json.NewDecoder(response.Body).Decode(&found) == nil, "the tasks cannot be read")
	return len(found.Data)
}

func main() {
	build, _ := debug.ReadBuildInfo()
	for _, it := range build.Deps {
		if it.Path == "github.com/openai/openai-go/v3" {
			fmt.Println("openai-go", it.Version)
		}
	}
	client := openai.NewClient(option.WithAPIKey(key), option.WithBaseURL(url+"/v1"))
	asked := []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Where to?")}
	chat := openai.ChatCompletionNewParams{Model: "gpt-4o", Messages: asked}

	// Chat, whole and as a stream
	whole := must(client.Chat.Completions.New(ctx, chat))
	check(whole.Choices[0].Message.Content == text, whole.RawJSON())
	stream := client.Chat.Completions.NewStreaming(ctx, chat)
	var streamed openai.ChatCompletionAccumulator
	for stream.Next() {
		streamed.AddChunk(stream.Current())
	}
	check(stream.Err() == nil, stream.Err())
	check(streamed.Choices[0].Message.Content == text, streamed.Choices)

	// A tool, until the answer is text
	schema := map[string]any{
		"type":       "object",
		"properties": map[string]any{"city": map[string]any{"type": "string"}},
		"required":   []string{"city"},
	}
	weather := openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name: "weather", Parameters: openai.FunctionParameters(schema),
	})
	chat.Tools = []openai.ChatCompletionToolUnionParam{weather}
	chat.Messages = []openai.ChatCompletionMessageParamUnion{
		openai.UserMessage("Where to? [[sim:tool=weather]]"),
	}
	called := must(client.Chat.Completions.New(ctx, chat)).Choices[0].Message
	check(len(called.ToolCalls) == 1 && called.ToolCalls[0].Function.Name == "weather", called.RawJSON())
	chat.Messages = append(chat.Messages, called.ToParam(), openai.ToolMessage("sunny", called.ToolCalls[0].ID))
	last := must(client.Chat.Completions.New(ctx, chat))
	check(last.Choices[0].Message.Content == text, last.RawJSON())

	// Structured output, responses, embeddings
	trip := map[string]any{
		"type": "object",
		"properties": map[string]any{
			"city": map[string]any{"type": "string"},
			"days": map[string]any{"type": "integer"},
		},
		"required":             []string{"city", "days"},
		"additionalProperties": false,
	}
	structured := must(client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
		Model: "gpt-4o", Messages: asked,
		ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{
			OfJSONSchema: &openai.ResponseFormatJSONSchemaParam{
				JSONSchema: openai.ResponseFormatJSONSchemaJSONSchemaParam{
					Name: "trip", Schema: trip, Strict: openai.Bool(true),
				},
			},
		},
	}))
	var made struct {
		City string `json:"city"`
		Days int    `json:"days"`
	}
	check(json.Unmarshal([]byte(structured.Choices[0].Message.Content), &made) == nil, structured.RawJSON())
	response := must(client.Responses.New(ctx, responses.ResponseNewParams{
		Model: "gpt-4o", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Where to?")},
	}))
	check(response.OutputText() == text, response.RawJSON())
	vectors := must(client.Embeddings.New(ctx, openai.EmbeddingNewParams{
		Model: "text-embedding-3-small",
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b"}},
	}))
	check(len(vectors.Data) == 2 && len(vectors.Data[1].Embedding) > 0, "no vectors")

	// Errors contain the detail of the problem
	stranger := openai.NewClient(option.WithAPIKey("sk-wrong"), option.WithBaseURL(url+"/v1"))
	_, err := stranger.Models.List(ctx)
	var refused *openai.Error
	check(errors.As(err, &refused) && refused.StatusCode == 401, err)
	check(strings.Contains(refused.Message, "malformed"), refused.Message)

	if os.Getenv("WORLD") != "the sandbox" {
		return
	}

	// An image, and speech that is transcribed again: the file precedes the model in the form
	picture := must(client.Images.Generate(ctx, openai.ImageGenerateParams{
		Model: "text-to-image-preview", Prompt: "A lighthouse", ResponseFormat: "b64_json",
	}))
	png := must(base64.StdEncoding.DecodeString(picture.Data[0].B64JSON))
	check(bytes.HasPrefix(png, []byte("\x89PNG")), "no picture")
	speech := must(client.Audio.Speech.New(ctx, openai.AudioSpeechNewParams{
		Model: "tts-1", Input: "Good morning.", Voice: openai.AudioSpeechNewParamsVoiceUnion{OfString: openai.String("alloy")},
		ResponseFormat: "wav",
	}))
	var wav bytes.Buffer
	must(wav.ReadFrom(speech.Body))
	heard := must(client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{
		Model: "whisper-1", File: openai.File(&wav, "speech.wav", "audio/wav"),
	}))
	check(strings.HasPrefix(heard.Text, "This transcript comes"), heard.RawJSON())

	// An image is bought once, however often the client retries
	before := taskCount()
	_, err = client.Images.Generate(ctx, openai.ImageGenerateParams{
		Model: "text-to-image-preview", Prompt: "[[sim:hang]]",
	}, option.WithHeader("prefer", "wait=1"), option.WithMaxRetries(2))
	check(errors.As(err, &refused), err)
	check(taskCount() == before+1, "tasks: ", taskCount(), " before: ", before)
}
