import java.util.concurrent.Callable;

/** What every program here needs: the gateway, its key, and the text of every response. */
final class World {
    static final String url = System.getenv("GATEWAY_URL");
    static final String key = System.getenv("GATEWAY_API_KEY");
    static final String text = System.getenv("ANSWER");
    static final boolean isSandbox = "the sandbox".equals(System.getenv("WORLD"));

    private World() {}

    static void check(boolean isSo, Object what) {
        if (!isSo) throw new AssertionError(String.valueOf(what));
    }

    static <E extends Exception> E fails(Class<E> kind, Callable<?> act) throws Exception {
        try {
            act.call();
        } catch (Exception error) {
            if (kind.isInstance(error)) return kind.cast(error);
            throw error;
        }
        throw new AssertionError("expected " + kind);
    }
}
