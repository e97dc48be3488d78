import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import made.ApiClient;
import made.ApiException;
import made.api.ModelsOfAlibabaApi;
import made.api.TasksApi;
import made.api.WalletApi;
import made.model.CreatedTask;
import made.model.Quote;
import made.model.TaskInfo.StatusEnum;
import made.model.TextToImagePreview;

/** A client that openapi-generator generates from the gateway's document. */
public class WithGenerated {
    static ApiClient clientOf(String key) {
        var client = new ApiClient().setBasePath(World.url);
        client.setBearerToken(key);
        return client;
    }

    public static void main(String[] args) throws Exception {
        var classes = Path.of(WithGenerated.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        var version = classes.resolveSibling("generated/.openapi-generator/VERSION");
        System.out.println("openapi-generator " + Files.readString(version).strip());
        var client = clientOf(World.key);
        var wallet = new WalletApi(client).getWallet(null);
        World.check(Double.parseDouble(wallet.getAvailableBalance()) > 0, wallet);
        var stranger = new WalletApi(clientOf("sk-wrong"));
        var refused = World.fails(ApiException.class, () -> stranger.getWallet(null));
        World.check(refused.getCode() == 401 && refused.getResponseBody().contains("malformed"), refused);
        if (World.isSandbox) createAndPoll(new ModelsOfAlibabaApi(client));
        var tasks = new TasksApi(client).listTasks(
                null, 2, null, null, null, null, null, null, null, null, null, null, null, null, null);
        World.check(tasks.getData().size() <= 2, tasks);
    }

    static void createAndPoll(ModelsOfAlibabaApi models) throws Exception {
        var asked = new TextToImagePreview().prompt("A lighthouse").n(99);
        var faulty = World.fails(ApiException.class, () -> create(models, asked, null));
        World.check(faulty.getCode() == 400 && faulty.getResponseBody().contains("\"#/n\""), faulty);
        asked.n(1);
        var quote = (Quote) create(models, asked, true);
        World.check(quote.getQuote().getAmount().equals("3.00"), quote);
        var task = ((CreatedTask) create(models, asked, null)).getTaskInfo().getId();
        World.check(images(models, task) == 1, task);
    }

    static Object create(ModelsOfAlibabaApi models, TextToImagePreview asked, Boolean dryRun) throws ApiException {
        return models.createAlibabaTextToImagePreviewGeneration(asked, null, null, null, dryRun).getActualInstance();
    }

    /** The number of images of a task, once it has completed. */
    static int images(ModelsOfAlibabaApi models, UUID task) throws Exception {
        for (int n = 0; n < 60; n += 1) {
            var found = models.getAlibabaTextToImagePreviewGeneration(task, "wait=5", null);
            if (found.getTaskInfo().getStatus() == StatusEnum.COMPLETED) return found.getImages().size();
        }
        throw new AssertionError("the task did not complete");
    }
}
