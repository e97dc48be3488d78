import static java.nio.charset.StandardCharsets.ISO_8859_1;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.MultipartField;
import com.openai.errors.NotFoundException;
import com.openai.errors.OpenAIServiceException;
import com.openai.errors.UnauthorizedException;
import com.openai.helpers.ChatCompletionAccumulator;
import com.openai.models.audio.speech.SpeechCreateParams;
import com.openai.models.audio.transcriptions.TranscriptionCreateParams;
import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.chat.completions.ChatCompletionToolMessageParam;
import com.openai.models.embeddings.EmbeddingCreateParams;
import com.openai.models.images.ImageGenerateParams;
import com.openai.models.responses.ResponseCreateParams;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.Base64;
import java.util.List;

/** OpenAI's client for Java. */
public class WithOpenai {
    static final OpenAIClient client = clientOf(World.key);

    public static class Trip {
        public String city;
        public int days;
    }

    /** What to wear there. */
    public static class Weather {
        public String city;
    }

    static OpenAIClient clientOf(String key) {
        return OpenAIOkHttpClient.builder().apiKey(key).baseUrl(World.url + "/v1").maxRetries(2).build();
    }

    static ChatCompletionCreateParams.Builder asked(String question) {
        return ChatCompletionCreateParams.builder().model("gpt-4o").addUserMessage(question);
    }

    static String textOf(ChatCompletion completion) {
        return completion.choices().get(0).message().content().orElse("");
    }

    static int taskCount() throws Exception {
        var request = HttpRequest.newBuilder(URI.create(World.url + "/manage/v1/tasks?limit=100"))
                .header("Authorization", "Bearer " + World.key)
                .build();
        var found = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
        World.check(found.statusCode() == 200, found.body());
        return new ObjectMapper().readTree(found.body()).get("data").size();
    }

    public static void main(String[] args) throws Exception {
        System.out.println("openai-java " + OpenAIClient.class.getPackage().getImplementationVersion());
        chat();
        tools();
        others();
        errors();
        if (World.isSandbox) {
            media();
            boughtOnce();
        }
    }

    /** Whole, as a stream, and as a class. */
    static void chat() {
        var completions = client.chat().completions();
        var params = asked("Where to?").build();
        World.check(textOf(completions.create(params)).equals(World.text), "another text");
        var streamed = ChatCompletionAccumulator.create();
        try (var stream = completions.createStreaming(params)) {
            stream.stream().forEach(streamed::accumulate);
        }
        World.check(textOf(streamed.chatCompletion()).equals(World.text), streamed.chatCompletion());
        var trip = completions.create(asked("Where to?").responseFormat(Trip.class).build());
        World.check(trip.choices().get(0).message().content().orElseThrow().city != null, trip);
    }

    /** A tool, until the answer is text. */
    static void tools() {
        var params = asked("Where to? [[sim:tool=Weather]]").addTool(Weather.class);
        var called = client.chat().completions().create(params.build()).choices().get(0).message();
        var calls = called.toolCalls().orElseThrow();
        World.check(calls.size() == 1, called);
        var call = calls.get(0).asFunction();
        World.check(call.function().arguments(Weather.class).city != null, called);
        params.addMessage(called)
                .addMessage(ChatCompletionToolMessageParam.builder().toolCallId(call.id()).content("sunny").build());
        var last = client.chat().completions().create(params.build());
        World.check(textOf(last).equals(World.text), last);
    }

    /** Responses and embeddings. */
    static void others() {
        var response = client.responses().create(ResponseCreateParams.builder().model("gpt-4o").input("Where to?").build());
        var words = response.output().stream()
                .flatMap(item -> item.message().stream())
                .flatMap(message -> message.content().stream())
                .flatMap(content -> content.outputText().stream())
                .map(it -> it.text())
                .toList();
        World.check(words.equals(List.of(World.text)), response);
        var vectors = client.embeddings()
                .create(EmbeddingCreateParams.builder()
                        .model("text-embedding-3-small")
                        .inputOfArrayOfStrings(List.of("a", "b"))
                        .build());
        World.check(vectors.data().size() == 2 && !vectors.data().get(1).embedding().isEmpty(), vectors);
    }

    /** Errors contain the detail of the problem. */
    static void errors() throws Exception {
        var stranger = clientOf("sk-wrong");
        var refused = World.fails(UnauthorizedException.class, () -> stranger.models().list());
        World.check(refused.getMessage().contains("malformed"), refused.getMessage());
        var other = ResponseCreateParams.builder().model("claude-sonnet-5").input("Hi").build();
        var unknown = World.fails(NotFoundException.class, () -> client.responses().create(other));
        World.check(unknown.getMessage().contains("use /v1/messages"), unknown.getMessage());
    }

    static ImageGenerateParams.Builder picture(String prompt) {
        return ImageGenerateParams.builder().model("text-to-image-preview").prompt(prompt);
    }

    /** An image, and speech that is transcribed again. */
    static void media() throws Exception {
        var params = picture("A lighthouse").responseFormat(ImageGenerateParams.ResponseFormat.B64_JSON).build();
        var image = client.images().generate(params).data().orElseThrow().get(0).b64Json().orElseThrow();
        World.check(new String(Base64.getDecoder().decode(image), ISO_8859_1).startsWith("PNG", 1), "no picture");
        var speech = client.audio()
                .speech()
                .create(SpeechCreateParams.builder()
                        .model("tts-1")
                        .input("Good morning.")
                        .voice("alloy")
                        .responseFormat(SpeechCreateParams.ResponseFormat.WAV)
                        .build());
        byte[] wav;
        try (speech) {
            wav = speech.body().readAllBytes();
        }
        var file = MultipartField.<InputStream>builder()
                .value(new ByteArrayInputStream(wav))
                .filename("speech.wav")
                .contentType("audio/wav")
                .build();
        var heard = client.audio()
                .transcriptions()
                .create(TranscriptionCreateParams.builder().model("whisper-1").file(file).build());
        World.check(heard.asTranscription().text().startsWith("This transcript comes"), heard);
    }

    /** An image is bought once, however often the client retries. */
    static void boughtOnce() throws Exception {
        var before = taskCount();
        var params = picture("[[sim:hang]]").putAdditionalHeader("prefer", "wait=1").build();
        World.fails(OpenAIServiceException.class, () -> client.images().generate(params));
        World.check(taskCount() == before + 1, "tasks: " + taskCount() + ", before: " + before);
    }
}
