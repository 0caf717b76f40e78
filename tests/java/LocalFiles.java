package headway.tests;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local files, with permissions that Java sets.
 *
 * <p>Without its native library, Hadoop starts a {@code chmod} for each file and folder that it
 * makes: thousands of processes in the tests of streaming queries.
 */
public final class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new WithoutProcesses());
    }

    private static final class WithoutProcesses extends RawLocalFileSystem {
        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) {
                super.setPermission(path, permission);
                return;
            }
            String letters =
                    permission.getUserAction().SYMBOL
                            + permission.getGroupAction().SYMBOL
                            + permission.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(
                    pathToFile(path).toPath(), PosixFilePermissions.fromString(letters));
        }
    }
}
