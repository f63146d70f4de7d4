import com.sun.jna.NativeLibrary;
import com.sun.jna.ptr.IntByReference;

public class Jna {
    public static void main(String[] words) {
        String whose = "none";
        try {
            IntByReference version = new IntByReference();
            NativeLibrary.getInstance("cuda").getFunction("cuDriverGetVersion").invokeInt(new Object[] {version});
            whose = version.getValue() > 1 ? "ours" : "theirs";
        } catch (UnsatisfiedLinkError error) {
        }
        System.out.println(whose);
    }
}
